import { decorate } from '../contenders/decorate.mjs';
import { LockService, RedlockModule, WithLock } from '../../../dist/esm/index.js';
import { allVote } from '../contenders/ours.mjs';
import { Module, NestFactory } from '../contenders/nest.mjs';

/** Masters that have just started wait for it. */
const TTL = '10s';
const CONCURRENCY = 64;
const keyOf = (id) => `order:${id}`;

/**
 * Microseconds of CPU of a call that acquires and releases a lock, in each of the three ways, which take turns round by
 * round.
 *
 * @param masters as in the options of the module
 */
export async function decorator({ masters, rounds, calls }) {
  class Host {
    async ship(id) {
      return id;
    }
  }
  decorate(Host, 'ship', WithLock(keyOf, TTL));
  class App {}
  Module({ imports: [RedlockModule.forRoot({ masters, ttl: TTL })], providers: [Host] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  const host = app.get(Host);
  const locks = app.get(LockService);
  await allVote(locks);

  const ways = Object.entries({
    async byHand(id) {
      const lock = await locks.acquire(keyOf(id), TTL);
      await lock.release();
    },
    direct: (id) => locks.withLock(keyOf(id), TTL, async () => id),
    decorated: (id) => host.ship(id),
  });
  const found = [];
  // The first quarter warms up the compiler.
  const warmUps = Math.ceil(rounds / 4);
  for (let round = 0; round < warmUps + rounds; round++) {
    const costs = {};
    for (let i = 0; i < ways.length; i++) {
      const [name, call] = ways[(round + i) % ways.length];
      costs[name] = await costOf(call, calls);
    }
    if (round >= warmUps) found.push(costs);
  }
  await app.close();
  return found;
}

/**
 * Measures CPU instead of time: a call takes microseconds, but the machine may suspend the process for milliseconds.
 */
async function costOf(call, calls) {
  let next = 0;
  async function caller() {
    while (next < calls) await call(next++);
  }
  const cpu = process.cpuUsage();
  await Promise.all(Array.from({ length: CONCURRENCY }, caller));
  const { user, system } = process.cpuUsage(cpu);
  return (user + system) / calls;
}
