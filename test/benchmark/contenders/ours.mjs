import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { sleep } from '../measure/figures.mjs';
import { Module, NestFactory } from './nest.mjs';
import { PERMITS } from './permits.mjs';

// The build of this checkout, or that of another one: a process has one build only.
const folder = import.meta.url.endsWith('?before')
  ? process.env.BENCH_BEFORE
  : resolve(import.meta.dirname, '../../..');
const { getLockServiceToken, RedlockModule } = await import(pathToFileURL(resolve(folder, 'dist/esm/index.js')).href);

const guardOff = { restartGuard: false };
const VARIANTS = {
  ours: {},
  before: {},
  /** Does as little as the peers: no guard against masters that lost their data. */
  'ours-plain': { options: guardOff },
  /** The masters in two sets, which have the same number of locks. */
  'ours-two-sets': { sets: 2 },
  'ours-shared': { call: { mode: 'shared' } },
  'ours-permits': { call: { permits: PERMITS } },
};

/** With every safety feature on. Masters that have just started wait for the ttl. */
export async function connect(urls, { ttl } = {}, name = 'ours') {
  const { options, call, sets = 1 } = VARIANTS[name];
  const size = urls.length / sets;
  const modules = Array.from({ length: sets }, (_, i) => {
    const masters = urls.slice(i * size, (i + 1) * size);
    return RedlockModule.forRoot({ name: `set${i}`, masters, wait: '5m', ttl, ...options });
  });
  class App {}
  Module({ imports: modules })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  const services = modules.map((_, i) => app.get(getLockServiceToken(`set${i}`)));
  for (const service of services) await allVote(service);
  let calls = 0;
  const next = sets === 1 ? () => services[0] : () => services[calls++ % sets];
  return {
    locks: services[0],
    async acquire(key, duration) {
      const lock = await next().acquire(key, call ? { ttl: duration, ...call } : duration);
      return () => lock.release();
    },
    async hold(key, duration) {
      const lock = await next().acquire(key, { ttl: duration, extend: true });
      return () => lock.release();
    },
    close: () => app.close(),
  };
}

/** Waits until all masters vote: those that have just started do not yet. */
export async function allVote(locks) {
  const deadline = performance.now() + 60_000;
  while (!locks.status().masters.every(({ state }) => state === 'voting')) {
    if (performance.now() > deadline) throw new Error(`no vote: ${JSON.stringify(locks.status())}`);
    await sleep(20);
  }
}
