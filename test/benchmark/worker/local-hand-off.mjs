import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { sharedNow, sleep } from '../measure/figures.mjs';

// A prototype that shows what the library would gain if it handed a lock over inside a process in one round: no
// notifications, no queue in Redis and no errors, just the traffic. The library contains nothing of it.

const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;
const SWAP = `if redis.call('GET', KEYS[1]) == ARGV[1] then
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) return 1 end return 0`;

const newToken = () => randomBytes(20).toString('hex');

/** Ways to replace the token of one local holder by the token of the next. Each resolves when a quorum has granted. */
const HAND_OVERS = {
  async 'release, then acquire'(masters, quorum, key, old, token, ttl) {
    await atLeast(
      quorum,
      masters.map((master) => master.give(key, old)),
    );
    await atLeast(
      quorum,
      masters.map((master) => master.set(key, token, 'PX', ttl, 'NX')),
    );
  },
  async 'release and acquire in one tick'(masters, quorum, key, old, token, ttl) {
    for (const master of masters) void master.give(key, old);
    await atLeast(
      quorum,
      masters.map((master) => master.set(key, token, 'PX', ttl, 'NX')),
    );
  },
  async 'token swap'(masters, quorum, key, old, token, ttl) {
    await atLeast(
      quorum,
      masters.map((master) => master.swap(key, old, token, ttl)),
    );
  },
};

/** Hand-offs per second, and microseconds of this process's CPU for each, with `waiters` waiters in line. */
export async function handLocally({ urls, key, ttl, waiters, section, handOver, duration }) {
  const masters = urls.map((url) => new Redis(url));
  for (const master of masters) {
    master.defineCommand('give', { numberOfKeys: 1, lua: RELEASE });
    master.defineCommand('swap', { numberOfKeys: 1, lua: SWAP });
  }
  const quorum = Math.floor(masters.length / 2) + 1;
  const line = new Line();
  let token = newToken();
  await Promise.all(masters.map((master) => master.set(key, token, 'PX', ttl)));

  const start = sharedNow();
  const cpu = process.cpuUsage();
  let count = 0;
  async function waiter() {
    while (sharedNow() < start + duration) {
      await line.enter();
      const old = token;
      token = newToken();
      await HAND_OVERS[handOver](masters, quorum, key, old, token, ttl);
      if (section) await sleep(section);
      count += 1;
      line.leave();
    }
  }
  await Promise.all(Array.from({ length: waiters }, waiter));

  const { user, system } = process.cpuUsage(cpu);
  const elapsed = sharedNow() - start;
  for (const master of masters) master.disconnect();
  return { perSecond: (count / elapsed) * 1000, cpu: (user + system) / count };
}

/** A queue in order of arrival. */
class Line {
  #occupied = false;
  #waiting = [];

  async enter() {
    if (this.#occupied) await new Promise((resolve) => this.#waiting.push(resolve));
    this.#occupied = true;
  }

  leave() {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#occupied = false;
  }
}

/** Resolves when `quorum` masters have granted; rejects if that is impossible. */
function atLeast(quorum, answers) {
  return new Promise((resolve, reject) => {
    let granted = 0;
    let pending = answers.length;
    const count = (answer) => {
      pending -= 1;
      if (answer === 1 || answer === 'OK') granted += 1;
      if (granted === quorum) resolve();
      else if (granted + pending < quorum) reject(new Error('no quorum'));
    };
    for (const answer of answers) answer.then(count, () => count(0));
  });
}
