import { Redis } from 'ioredis';
import Redlock from 'redlock';

/** As it comes; only the number of attempts to acquire is not limited, since it is time that ends a round here. */
export const connect = (urls) => connectWith(urls, {});

export async function connectWith(urls, settings) {
  const clients = urls.map((url) => new Redis(url));
  await Promise.all(clients.map((client) => client.ping()));
  const redlock = new Redlock(clients, settings);
  // Every refusal is an 'error' event.
  redlock.on('error', () => {});
  return {
    async acquire(key, ttl) {
      const lock = await redlock.acquire([key], ttl, { retryCount: 1_000_000 });
      return () => lock.release();
    },
    async close() {
      for (const client of clients) client.disconnect();
    },
  };
}
