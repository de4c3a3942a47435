export const OURS = 'ours';
export const PLAIN = 'ours-plain';
export const FLOOR = 'floor-ioredis';
export const LIMIT = 'floor-resp';

/** Other libraries, with the largest number of masters in this comparison. */
const PEERS = {
  redlock5: 5,
  redlock4: 5,
  'redlock-universal': 5,
  'redis-semaphore': 5,
  'redis-kit': 5,
  'nest-redlock': 5,
  murlock: 1,
};

export const isPeer = (contender) => contender in PEERS;

/** Who takes part with so many masters; `only` narrows it. The floor does always: the others are told in terms of it. */
export function contendersFor(masters, only) {
  const peers = Object.keys(PEERS).filter((peer) => PEERS[peer] >= masters);
  const all = [LIMIT, FLOOR, OURS, PLAIN, ...peers];
  return only ? all.filter((contender) => contender === FLOOR || only.includes(contender)) : all;
}

/** Those of them that are libraries. */
export const librariesFor = (masters, only) =>
  contendersFor(masters, only).filter((name) => name !== FLOOR && name !== LIMIT);

/** Who takes part in a quick run where each has to be measured alone. */
export const FEW = [OURS, 'redlock5', 'redis-semaphore'];
