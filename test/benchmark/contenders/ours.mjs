import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { sleep } from '../measure/figures.mjs';
import { NestFactory } from './nest.mjs';
import { PERMITS } from './permits.mjs';

// The build of this checkout, or that of another one: a process has one build only.
const folder = import.meta.url.endsWith('?before')
  ? process.env.BENCH_BEFORE
  : resolve(import.meta.dirname, '../../..');
const { LockService, RedlockModule } = await import(pathToFileURL(resolve(folder, 'dist/esm/index.js')).href);

const guardOff = { restartGuard: false };
const VARIANTS = {
  ours: {},
  before: {},
  /** Does as little as the peers: no guard against masters that lost their data. */
  'ours-plain': { options: guardOff },
  'ours-shared': { call: { mode: 'shared' } },
  'ours-permits': { call: { permits: PERMITS } },
};

/** With every safety feature on. Masters that have just started wait for the ttl. */
export async function connect(urls, { ttl } = {}, name = 'ours') {
  const { options, call } = VARIANTS[name];
  const module = RedlockModule.forRoot({ masters: urls, wait: '5m', ttl, ...options });
  const app = await NestFactory.createApplicationContext(module, { logger: false });
  const locks = app.get(LockService);
  await allVote(locks);
  return {
    async acquire(key, duration) {
      const lock = await locks.acquire(key, call ? { ttl: duration, ...call } : duration);
      return () => lock.release();
    },
    async tryAcquire(key, duration) {
      const lock = await locks.tryAcquire(key, duration);
      return lock && (() => lock.release());
    },
    async hold(key, duration) {
      const lock = await locks.acquire(key, { ttl: duration, extend: true });
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
