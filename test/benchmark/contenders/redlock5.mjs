import Redlock from 'redlock';
import { disconnectAll, ioredisClients } from './ioredis-clients.mjs';
import { holdWith } from './hold.mjs';

/** The retry delay is tuned to the section, with jitter in the default proportion. */
const TUNED = { retryDelay: 10, retryJitter: 5 };

/** With its defaults, except that the number of attempts is unlimited, because time ends a round here. */
export async function connect(urls, _settings, name) {
  const clients = await ioredisClients(urls);
  const redlock = new Redlock(clients, name === 'redlock5-10ms' ? TUNED : {});
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
