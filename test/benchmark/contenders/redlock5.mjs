import Redlock from 'redlock';
import { disconnectAll, ioredisClients } from './ioredis-clients.mjs';
import { holdWith } from './hold.mjs';

/** With its defaults, except that the number of attempts is unlimited, because time ends a round here. */
export const connect = (urls) => connectWith(urls, {});

export async function connectWith(urls, settings) {
  const clients = await ioredisClients(urls);
  const redlock = new Redlock(clients, settings);
  // Every refusal is also an 'error' event.
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
