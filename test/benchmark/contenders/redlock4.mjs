import Redlock from 'redlock4';
import { disconnectAll, ioredisClients } from './ioredis-clients.mjs';

export async function connect(urls) {
  const clients = await ioredisClients(urls);
  const redlock = new Redlock(clients, { retryCount: -1 });
  return {
    async acquire(key, ttl) {
      const lock = await redlock.lock(key, ttl);
      return () => lock.unlock();
    },
    close: async () => disconnectAll(clients),
  };
}
