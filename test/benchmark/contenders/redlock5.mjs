import Redlock from 'redlock';
import { disconnectAll, ioredisClients } from './ioredis-clients.mjs';
import { holdWith } from './hold.mjs';

/** Tuned to the section of the suite `waiting`, for longer than a round of it. */
const TUNED = { retryDelay: 10, retryJitter: 5, retryCount: 300 };

/** With its defaults, unless the name says a delay. */
export async function connect(urls, _settings, name) {
  const clients = await ioredisClients(urls);
  const redlock = new Redlock(clients, name === 'redlock5-10ms' ? TUNED : {});
  // Every refusal is also an 'error' event.
  redlock.on('error', () => {});
  return {
    async acquire(key, ttl) {
      const lock = await redlock.acquire([key], ttl);
      return () => lock.release();
    },
    hold: holdWith((key, ttl, work) => redlock.using([key], ttl, work)),
    close: async () => disconnectAll(clients),
  };
}
