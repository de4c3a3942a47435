import { decorate } from '../contenders/decorate.mjs';
import { LockService, Module, NestFactory, RedlockModule, WithLock } from '../contenders/library.mjs';

const TTL = '10s';
const keyOf = (id) => `order:${id}`;

/** Microseconds of CPU of a call by `@WithLock` and by `LockService.withLock`, in turn, on a master in memory. */
export async function decorator({ pairs, calls }) {
  class Host {
    async ship(id) {
      return id;
    }
  }
  decorate(Host, 'ship', WithLock(keyOf, TTL));
  class App {}
  Module({ imports: [RedlockModule.forRoot({ masters: 'memory' })], providers: [Host] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  const host = app.get(Host);
  const locks = app.get(LockService);

  const decorated = (id) => host.ship(id);
  const direct = (id) => locks.withLock(keyOf(id), TTL, async () => id);
  const found = [];
  // The first quarter warms up the compiler.
  for (let pair = -pairs / 4; pair < pairs; pair++) {
    const order = pair % 2 === 0 ? [decorated, direct] : [direct, decorated];
    const costs = new Map();
    for (const call of order) costs.set(call, await costOf(call, calls));
    if (pair >= 0) found.push({ decorated: costs.get(decorated), direct: costs.get(direct) });
  }
  await app.close();
  return found;
}

/**
 * Measures CPU instead of time: a call takes microseconds, but the machine may suspend the process for milliseconds.
 */
async function costOf(call, calls) {
  const cpu = process.cpuUsage();
  for (let id = 0; id < calls; id++) await call(id);
  const { user, system } = process.cpuUsage(cpu);
  return (user + system) / calls;
}
