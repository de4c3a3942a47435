import { createRedlock, IoredisAdapter } from 'redlock-universal';
import { disconnectAll, ioredisClients } from './ioredis-clients.mjs';
import { holdWith } from './hold.mjs';

/** Tuned to the section of the suite `waiting`, for longer than a round of it. */
const TUNED = { retryDelay: 10, retryAttempts: 300 };

/** With its defaults, unless the name says a delay. */
export async function connect(urls, _settings, name) {
  const retries = name === 'redlock-universal-10ms' ? TUNED : {};
  const clients = await ioredisClients(urls);
  const adapters = clients.map((client) => new IoredisAdapter(client));
  return {
    async acquire(key, ttl) {
      const lock = createRedlock({ adapters, key, ttl, ...retries });
      const handle = await lock.acquire();
      return () => lock.release(handle);
    },
    hold: holdWith((key, ttl, work) => createRedlock({ adapters, key, ttl }).using(work)),
    close: async () => disconnectAll(clients),
  };
}
