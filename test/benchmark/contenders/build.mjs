import { sleep } from '../measure/numbers.mjs';
import { NestFactory } from './nest.mjs';

/** Connects with one build of this library: that of this checkout, or that of another one. */
export async function connectBuild({ LockService, RedlockModule }, urls, options) {
  const module = RedlockModule.forRoot({ masters: urls, wait: '5m', ...options });
  const app = await NestFactory.createApplicationContext(module, { logger: false });
  const locks = app.get(LockService);
  await allVote(locks);
  return {
    /** @param options the ttl, or all options of the call */
    async acquire(key, options) {
      const lock = await locks.acquire(key, options);
      return () => lock.release();
    },
    async tryAcquire(key, ttl) {
      const lock = await locks.tryAcquire(key, ttl);
      return lock && (() => lock.release());
    },
    async hold(key, ttl) {
      const lock = await locks.acquire(key, { ttl, extend: true });
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
