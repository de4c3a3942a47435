import Redlock from 'redlock';
import { disconnectAll, ioredisClients } from './ioredis-clients.mjs';
import { holdWith } from './hold.mjs';

/** As it comes; only the number of attempts to acquire is not limited, since it is time that ends a round here. */
export const connect = (urls) => connectWith(urls, {});

export async function connectWith(urls, settings) {
  const clients = await ioredisClients(urls);
  const redlock = new Redlock(clients, settings);
  // Every refusal is an 'error' event.
  redlock.on('error', () => {});
  return {
    async acquire(key, ttl) {
      const lock = await redlock.acquire([key], ttl, { retryCount: 1_000_000 });
      return () => lock.release();
    },
    hold: holdWith((key, ttl, work) => redlock.using([key], ttl, work)),
    close: async () => disconnectAll(clients),
  };
}
