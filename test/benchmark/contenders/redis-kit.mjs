import { Redlock } from '@redis-kit/lock';
import { nodeRedisClients } from './clients.mjs';
import { holdWith } from './hold.mjs';

export async function connect(urls) {
  const clients = await nodeRedisClients(urls);
  const redlock = new Redlock(clients);
  return {
    async acquire(key, ttl) {
      const lock = await redlock.acquire(key, ttl);
      if (!lock) throw new Error('not acquired');
      return () => lock.release();
    },
    hold: holdWith((key, ttl, work) => redlock.withLock(key, ttl, work)),
    close: async () => clients.forEach((client) => client.destroy()),
  };
}
