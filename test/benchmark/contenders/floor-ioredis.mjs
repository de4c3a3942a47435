import { disconnectAll, ioredisClients } from './ioredis-clients.mjs';
import { newToken, RELEASE } from './floor.mjs';

/** The lowest cost of a lock with ioredis and no optimization: the commands to all masters, and nothing else. */
export async function connect(urls) {
  const clients = await ioredisClients(urls);
  const [sha] = await Promise.all(clients.map((client) => client.script('LOAD', RELEASE)));
  return {
    async acquire(key, ttl) {
      const token = newToken();
      await Promise.all(clients.map((client) => client.set(key, token, 'PX', ttl, 'NX')));
      return () => Promise.all(clients.map((client) => client.evalsha(sha, 1, key, token)));
    },
    close: async () => disconnectAll(clients),
  };
}
