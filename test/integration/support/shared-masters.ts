import { afterAll, beforeAll, beforeEach } from '@jest/globals';
import type { RedisServer } from '../../../scripts/redis-servers.mjs';
import { withClient } from '../../support/command.js';
import { type Masters, startMasters } from '../../support/masters.js';

export type SharedMasters = Pick<Masters, 'servers' | 'urls'>;

/** What a test may have changed on a server, as it is on a new one. */
const RESET = [
  ['ACL', 'SETUSER', 'default', 'on', 'nopass', 'allkeys', 'allchannels', '+@all'],
  ['REPLICAOF', 'NO', 'ONE'],
  ['CONFIG', 'SET', 'maxmemory', '0'],
  ['CONFIG', 'SET', 'min-replicas-to-write', '0'],
  ['FLUSHALL'],
  ['SCRIPT', 'FLUSH'],
  ['CONFIG', 'RESETSTAT'],
] as const;

/**
 * Masters of all tests of a file or a `describe`: the start of a server costs more processor time than most tests. To
 * each test they are as new ones: those that were killed have been started again, the others resumed and emptied.
 */
export function sharedMasters(count: number): SharedMasters {
  let masters: Masters;
  beforeAll(async () => {
    masters = await startMasters(count);
  });
  beforeEach(() => Promise.all(masters.servers.map(renew)));
  afterAll(() => masters.stop());
  return {
    get servers() {
      return masters.servers;
    },
    get urls() {
      return masters.urls;
    },
  };
}

async function renew(server: RedisServer): Promise<void> {
  if (server.pid === undefined) return server.restart();
  server.resume();
  await withClient(server.port, async (client) => {
    for (const [name, ...args] of RESET) await client.call(name, ...args);
  });
}
