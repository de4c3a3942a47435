import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { redisMaster } from '../../lib/redis/master-source.js';
import type { RedisMaster } from '../../lib/redis/redis-master.js';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { acquiring, ask, extending, inspecting, releasing } from '../support/ask.js';
import { leftovers } from '../support/leftovers.js';
import { contextOf } from '../support/context.js';
import { Contender } from '../support/redlocks.js';

describe('A server that has forgotten its scripts', () => {
  let server: RedisServer;
  let client: Redis;
  let master: RedisMaster;

  beforeAll(async () => {
    server = await RedisServer.start();
    client = new Redis(server.port, '127.0.0.1');
    master = redisMaster('masters[0]', server.url, contextOf());
    await master.connect();
  });
  afterAll(async () => {
    await master.close();
    client.disconnect();
    await server.stop();
  });
  beforeEach(async () => {
    await client.flushall();
    await client.script('FLUSH');
  });

  it.each([
    acquiring(['a', 'b'], 'mine'),
    extending(['a', 'b'], 'mine'),
    releasing(['a', 'b'], 'mine'),
    inspecting('a', 'b'),
  ])('is given the script for $op again', async (request) => {
    expect(await ask(master, request)).toMatchObject({ kind: 'granted' });
    const misses = await errorsOf('NOSCRIPT');
    expect(await ask(master, releasing(['a', 'b'], 'mine'))).toEqual({ kind: 'granted' });
    await ask(master, request);
    expect(await errorsOf('NOSCRIPT')).toBeLessThanOrEqual(misses + 1);
  });

  it.each([acquiring(['a', 'b'], 'mine'), extending(['a'], 'mine')])(
    'does not get the script for $op again when the request has been withdrawn',
    async (request) => {
      const answer = ask(master, request);
      request.withdrawn = true;
      const release = ask(master, releasing(['a', 'b'], 'mine'));
      expect(await answer).toMatchObject({ kind: 'refused', code: 'NOSCRIPT' });
      expect(await release).toEqual({ kind: 'granted' });
      expect(await leftovers(server.port)).toEqual([]);
    },
  );

  it('costs an application only one round trip', async () => {
    await using contender = await Contender.on([server.url]);
    for (let i = 0; i < 5; i++) {
      await client.script('FLUSH');
      const lock = await contender.acquire(['a', 'b'], '10s');
      await client.script('FLUSH');
      await lock.extend();
      await client.script('FLUSH');
      await lock.release();
      expect(await leftovers(server.port)).toEqual([]);
    }
  });

  async function errorsOf(code: string): Promise<number> {
    const info = await client.info('errorstats');
    return Number(new RegExp(`errorstat_${code}:count=(\\d+)`).exec(info)?.[1] ?? 0);
  }
});

describe('A new connection', () => {
  it('loads the scripts before they are needed', async () => {
    const server = await RedisServer.start();
    const master = redisMaster('masters[0]', server.url, contextOf());
    await master.connect();
    await ask(master, acquiring(['a', 'b'], 'mine'));
    await ask(master, releasing(['a', 'b'], 'mine'));
    const client = new Redis(server.port, '127.0.0.1');
    expect(await client.info('errorstats')).not.toMatch(/NOSCRIPT/);
    client.disconnect();
    await master.close();
    await server.stop();
  });
});
