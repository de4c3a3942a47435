import { Redlock } from '@redis-kit/lock';
import { createClient } from 'redis';
import { holdWith } from './hold.mjs';

const EXTEND_BEFORE_END = 1_000;

export async function connect(urls) {
  const clients = urls.map((url) => createClient({ url }));
  for (const client of clients) client.on('error', () => {});
  await Promise.all(clients.map((client) => client.connect()));
  const redlock = new Redlock(clients);
  return {
    async acquire(key, ttl) {
      const lock = await redlock.acquire(key, ttl);
      if (!lock) throw new Error('not acquired');
      return () => lock.release();
    },
    // It extends only if it is told when.
    hold: holdWith((key, ttl, work) => redlock.withLock(key, ttl, work, { extensionThresholdMs: EXTEND_BEFORE_END })),
    close: async () => clients.forEach((client) => client.destroy()),
  };
}
