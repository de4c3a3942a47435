import { Redlock } from '@redis-kit/lock';
import { createClient } from 'redis';

/** It extends only if an option says when. Its documentation gives this value as the default. */
const EXTEND_BEFORE_END = 1_000;

// It writes a line for every lock that it loses. The benchmark counts these losses instead.
console.warn = () => {};

/** Tuned to the section of the suite `waiting`, for longer than a round of it. */
const TUNED = { retryDelayMs: 10, retryJitterMs: 5, maxRetryAttempts: 300 };

/** With its defaults, unless the name says a delay. */
export async function connect(urls, _settings, name) {
  const clients = urls.map((url) => createClient({ url }));
  for (const client of clients) client.on('error', () => {});
  await Promise.all(clients.map((client) => client.connect()));
  const redlock = new Redlock(clients, name === 'redis-kit-10ms' ? TUNED : {});
  const take = async (key, ttl) => {
    const lock = await redlock.acquire(key, ttl);
    if (!lock) throw new Error('not acquired');
    return lock;
  };
  return {
    async acquire(key, ttl) {
      const lock = await take(key, ttl);
      return () => lock.release();
    },
    async hold(key, ttl) {
      const lock = await take(key, ttl);
      lock.startAutoExtension(EXTEND_BEFORE_END);
      return async () => {
        const { isExpired } = lock;
        await lock.release();
        if (isExpired) throw new Error('lost');
      };
    },
    close: async () => clients.forEach((client) => client.destroy()),
  };
}
