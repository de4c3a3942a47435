import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { redisMaster } from '../../lib/redis/master-source.js';
import type { RedisMasterSource } from '../../lib/redis/source.interface.js';
import type { RedisMaster } from '../../lib/redis/redis-master.js';
import type { RedisServer } from '../../scripts/redis-servers.mjs';
import { acquiring, ask, drawing, extending, releasing } from '../support/ask.js';
import { command } from '../support/command.js';
import { contextOf } from '../support/context.js';
import { sharedMasters } from './support/shared-masters.js';

const masters = sharedMasters(1);

const sources: Record<string, (server: RedisServer) => RedisMasterSource> = {
  'ioredis 6': (server) => server.url,
  'ioredis 5': ({ port }) => new Redis5(port, '127.0.0.1', { lazyConnect: true }),
};

describe.each(Object.entries(sources))('Requests made in one turn (%s)', (_, sourceOf) => {
  let operator: Redis;
  let master: RedisMaster;

  beforeEach(async () => {
    const server = masters.servers[0]!;
    operator = new Redis(server.port, '127.0.0.1');
    master = redisMaster('masters[0]', sourceOf(server), contextOf());
    await master.connect();
  });
  afterEach(async () => {
    await master.close();
    operator.disconnect();
  });

  it('go to the server in one command of a bounded size', async () => {
    const before = await scriptsRun();
    await Promise.all(Array.from({ length: 100 }, (_, i) => ask(master, acquiring([`k${i}`, `x${i}`], 'mine'))));
    // Earlier requests came alone, so the first one goes out at once instead of waiting for others.
    expect(await scriptsRun()).toBe(before + 2);
    const answers = Array.from({ length: 300 }, (_, i) => ask(master, releasing([`k${i}`], 'mine')));
    const kinds = (await Promise.all(answers)).map(({ kind }) => kind);
    expect(kinds).toEqual([...Array<string>(100).fill('granted'), ...Array<string>(200).fill('gone')]);
    expect(await scriptsRun()).toBe(before + 5);
  });

  // Protocol 4.8
  it('fail individually if a key has the wrong type', async () => {
    await operator.hset('no lock', 'a', 'hash');
    // Beyond the clock of the server.
    const [first, next] = [8_000_000_000_000_000, 8_000_000_000_000_001];
    const counter = { counters: [1], atLeast: first };
    const answers = await Promise.all([
      ask(master, acquiring(['a'], 'mine')),
      ask(master, drawing(['a'], 'mine', counter)),
      ask(master, drawing(['no lock'], 'mine', counter)),
      ask(master, acquiring(['b', 'no lock'], 'mine')),
      ask(master, extending(['no lock'], 'mine')),
      ask(master, releasing(['no lock'], 'mine')),
      ask(master, drawing(['a'], 'mine', counter)),
    ]);
    const wrong = { kind: 'refused', code: 'WRONGTYPE' };
    expect(answers).toMatchObject([
      { kind: 'granted' },
      { kind: 'granted', fence: first },
      wrong,
      wrong,
      wrong,
      wrong,
      { kind: 'granted', fence: next },
    ]);
    expect(await operator.exists('b')).toBe(0);
  });

  async function scriptsRun(): Promise<number> {
    const stats = await operator.info('commandstats');
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
  }
});

it('A new connection loads the scripts before they are needed', async () => {
  const [{ port, url }] = masters.servers as [RedisServer];
  const master = redisMaster('masters[0]', url, contextOf());
  await master.connect();
  await ask(master, acquiring(['a', 'b'], 'mine'));
  await ask(master, releasing(['a', 'b'], 'mine'));
  expect(await command(port, 'INFO', 'errorstats')).not.toMatch(/NOSCRIPT/);
  await master.close();
});
