import { createRedlock, IoredisAdapter } from 'redlock-universal';
import { disconnectAll, ioredisClients } from './ioredis-clients.mjs';
import { holdWith } from './hold.mjs';

export async function connect(urls) {
  const clients = await ioredisClients(urls);
  const adapters = clients.map((client) => new IoredisAdapter(client));
  return {
    async acquire(key, ttl) {
      const lock = createRedlock({ adapters, key, ttl });
      const handle = await lock.acquire();
      return () => lock.release(handle);
    },
    hold: holdWith((key, ttl, work) => createRedlock({ adapters, key, ttl }).using(work)),
    close: async () => disconnectAll(clients),
  };
}
