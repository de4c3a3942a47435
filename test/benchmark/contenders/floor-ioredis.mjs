import { randomBytes } from 'node:crypto';
import { disconnectAll, ioredisClients } from './ioredis-clients.mjs';

const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;

/** The lowest cost of a lock with ioredis and no optimization: the commands to all masters, and nothing else. */
export async function connect(urls) {
  const clients = await ioredisClients(urls);
  const [sha] = await Promise.all(clients.map((client) => client.script('LOAD', RELEASE)));
  return {
    async acquire(key, ttl) {
      const token = randomBytes(20).toString('hex');
      await Promise.all(clients.map((client) => client.set(key, token, 'PX', ttl, 'NX')));
      return () => Promise.all(clients.map((client) => client.evalsha(sha, 1, key, token)));
    },
    close: async () => disconnectAll(clients),
  };
}
