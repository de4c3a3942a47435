import { RedlockSemaphore, Semaphore } from 'redis-semaphore';
import { disconnectAll, ioredisClients } from './ioredis-clients.mjs';
import { PERMITS } from './permits.mjs';

/** With its defaults, except that it does not extend a permit, as no other contender here does. */
export async function connect(urls) {
  const clients = await ioredisClients(urls);
  const semaphore = (key, options) =>
    clients.length === 1
      ? new Semaphore(clients[0], key, PERMITS, options)
      : new RedlockSemaphore(clients, key, PERMITS, options);
  return {
    async acquire(key, ttl) {
      const permit = semaphore(key, { lockTimeout: ttl, refreshInterval: 0 });
      await permit.acquire();
      return () => permit.release();
    },
    close: async () => disconnectAll(clients),
  };
}
