import { Redis } from 'ioredis';
import Redlock from 'redlock4';

export async function connect(urls) {
  const clients = urls.map((url) => new Redis(url));
  await Promise.all(clients.map((client) => client.ping()));
  const redlock = new Redlock(clients, { retryCount: -1 });
  return {
    async acquire(key, ttl) {
      const lock = await redlock.lock(key, ttl);
      return () => lock.unlock();
    },
    async close() {
      for (const client of clients) client.disconnect();
    },
  };
}
