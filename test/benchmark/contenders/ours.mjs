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
/** Of two URLs, that of a server, or that of a cluster. */
const server = ([url]) => [url];
const cluster = ([, url]) => [url];
const batched = ([, url]) => [{ cluster: url.replace('redis+cluster://', '').split(','), batchPartitions: true }];
/** All resources have one hash tag, and so are in one partition. */
const tagged = (key) => `{bench}${key}`;

const VARIANTS = {
  ours: {},
  before: {},
  /** Does as little as the peers: no guard against masters that lost their data. */
  'ours-plain': { options: guardOff },
  'ours-shared': { call: { mode: 'shared' } },
  'ours-permits': { call: { permits: PERMITS } },
  'one-server': { masters: server },
  'one-server-plain': { masters: server, options: guardOff },
  cluster: { masters: cluster },
  'cluster-plain': { masters: cluster, options: guardOff },
  'cluster-batched': { masters: batched },
  'cluster-one-tag': { masters: cluster, nameOf: tagged },
  'cluster-one-tag-plain': { masters: cluster, nameOf: tagged, options: guardOff },
};

/** With every safety feature on. A short `maxTtl` shortens the quarantine of masters that have just started. */
export async function connect(urls, { ttl } = {}, name = 'ours') {
  const { masters = (all) => all, nameOf = (key) => key, options, call } = VARIANTS[name];
  const module = RedlockModule.forRoot({ masters: masters(urls), wait: '5m', ttl, maxTtl: ttl, ...options });
  const app = await NestFactory.createApplicationContext(module, { logger: false });
  const locks = app.get(LockService);
  await allVote(locks);
  return {
    async acquire(key, duration) {
      const lock = await locks.acquire(nameOf(key), call ? { ttl: duration, ...call } : duration);
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
