import { RedlockMutex } from 'redis-semaphore';
import { disconnectAll, ioredisClients } from './ioredis-clients.mjs';

/** It extends every lock unless this option turns that off. */
const NO_EXTENSION = { refreshInterval: 0 };

export async function connect(urls) {
  const clients = await ioredisClients(urls);
  const take = async (key, options) => {
    const mutex = new RedlockMutex(clients, key, options);
    await mutex.acquire();
    return () => mutex.release();
  };
  return {
    acquire: (key, ttl) => take(key, { lockTimeout: ttl, ...NO_EXTENSION }),
    hold: (key, ttl) => take(key, { lockTimeout: ttl }),
    close: async () => disconnectAll(clients),
  };
}
