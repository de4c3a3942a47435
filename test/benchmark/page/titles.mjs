/** What the contenders are called where users read of them. */
const TITLES = {
  ours: 'nestjs-redlock',
  'ours-plain': 'nestjs-redlock, guard off',
  redlock5: 'redlock 5',
  redlock4: 'redlock 4',
  'redis-kit': '@redis-kit/lock',
  'nest-redlock': '@anchan828/nest-redlock',
  'floor-ioredis': 'bare commands, ioredis',
};

export const titleOf = (contender) => TITLES[contender] ?? contender;
