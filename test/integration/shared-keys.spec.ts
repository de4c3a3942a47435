import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { WRITER } from '../../lib/settings/keyspace.js';
import { Redis } from 'ioredis';
import { redisMaster } from '../../lib/redis/master-source.js';
import type { RedisMaster } from '../../lib/redis/redis-master.js';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { acquiring, ask, drawing, extending, inspecting, picking, releasing, sharing } from '../support/ask.js';
import { contextOf } from '../support/context.js';

const GRANTED = { kind: 'granted' };
const HELD = { kind: 'held' };
const WRONGTYPE = { kind: 'refused', code: 'WRONGTYPE' };
const OOM = { kind: 'refused', code: 'OOM' };
const WRITER_OF_K = `queue:k${WRITER}`;
const QUEUE = { queues: ['queue:k'], waiter: 'me', waited: 5, reserveFor: 50 };

describe('Shared keys on a real server', () => {
  let server: RedisServer;
  let client: Redis;
  let master: RedisMaster;

  const share = (token: string, ttl = 60_000) => ask(master, sharing(['k'], token, { ttl }));
  const prolong = (token: string, ttl = 60_000) => ask(master, { ...extending(['k'], token, ttl), isShared: true });
  const heal = (token: string, ttl = 60_000) =>
    ask(master, { ...extending(['k'], token, ttl), isShared: true, heals: true });
  const unshare = (...keys: string[]) => ask(master, { ...releasing(keys, 'one'), isShared: true });

  beforeAll(async () => {
    server = await RedisServer.start();
    client = new Redis(server.port, '127.0.0.1');
    master = redisMaster('masters[0]', server.url, contextOf());
    await master.connect();
    master.listen('me', () => undefined);
  });
  afterAll(async () => {
    await master.close();
    client.disconnect();
    await server.stop();
  });
  beforeEach(() => client.flushall());

  /** The members of a sorted set, each with the milliseconds by which it ends before the key. */
  async function members(key = 'k'): Promise<Record<string, number>> {
    const till = await client.call('PEXPIRETIME', key);
    const words = await client.zrange(key, '0', '-1', 'WITHSCORES');
    return Object.fromEntries(
      words.flatMap((word, i) => (i % 2 === 0 ? [[word, Number(till) - Number(words[i + 1])]] : [])),
    );
  }

  // Protocol 11.1
  it('are sorted sets that live exactly as long as their last member', async () => {
    await share('one', 10_000);
    expect(await members()).toEqual({ 'shared one': 0 });
    await share('two', 50_000);
    expect(await members()).toEqual({ 'shared two': 0, 'shared one': expect.any(Number) });
    await prolong('one', 70_000);
    expect(await members()).toEqual({ 'shared one': 0, 'shared two': expect.any(Number) });
    await unshare('k');
    expect(await members()).toEqual({ 'shared two': 0 });
    await heal('three', 90_000);
    expect(await members()).toEqual({ 'shared three': 0, 'shared two': expect.any(Number) });
  });

  // Protocol 11.1
  it('lose the members that have ended with the next change', async () => {
    await share('two');
    await client.zadd('k', 1, 'shared one');
    expect(await ask(master, inspecting('k'))).toMatchObject({ sharedBy: 1 });
    expect(await prolong('one')).toEqual({ kind: 'gone' });
    expect(await heal('one')).toEqual(GRANTED);
    await client.zadd('k', 1, 'shared three');
    await prolong('two');
    expect(Object.keys(await members()).sort()).toEqual(['shared one', 'shared two']);
  });

  // Protocol 11.5
  it('have waiters in the queue of the key, in the order of their arrival', async () => {
    await ask(master, acquiring(['k'], 'writer'));
    await listening();
    await ask(master, sharing(['k'], 'one', { waited: 5_000, queue: QUEUE }));
    const [member, since] = await client.zrange('queue:k', '0', '-1', 'WITHSCORES');
    const [seconds] = await client.time();
    expect(member).toBe('shared me');
    expect(Number(since)).toBeLessThan((Number(seconds) - 3) * 1_000);
    expect(await client.pttl('queue:k')).toBeGreaterThan(0);
  });

  // Protocol 11.6
  it('have a writer key for five seconds from the last request of its writer', async () => {
    const want = (waiter: string, waited: number) =>
      ask(master, { op: 'defer-readers', keys: ['k'], writerKeys: [WRITER_OF_K], waiter, waited });
    await want('me', 7_000);
    await client.pexpire(WRITER_OF_K, 60_000);
    await want('another', 9_000);
    expect(await client.pttl(WRITER_OF_K)).toBeGreaterThan(5_000);
    await want('me', 0);
    const ttl = await client.pttl(WRITER_OF_K);
    expect(ttl).toBeGreaterThan(0);
    expect(ttl).toBeLessThanOrEqual(5_000);
    expect(await client.get(WRITER_OF_K)).toMatch(/^\d{13} me$/);
    await ask(master, { op: 'leave', keys: ['k'], queues: ['queue:k'], waiter: 'me' });
    expect(await client.exists(WRITER_OF_K)).toBe(0);
  });

  // Protocol 2.2
  it('are not confused with a value of another program', async () => {
    const till = Date.now() + 60_000;
    await client.zadd('k', till, 'a member of another program');
    await client.pexpire('k', 60_000);
    await client.zadd('endless', till, 'shared one');
    await client.rpush('list', 'x');
    for (const key of ['k', 'endless', 'list']) {
      expect(await ask(master, sharing([key], 'one'))).toMatchObject(WRONGTYPE);
      expect(await ask(master, sharing(['free', key], 'one'))).toMatchObject(WRONGTYPE);
      expect(await ask(master, { ...extending(['free', key], 'one'), isShared: true })).toMatchObject(WRONGTYPE);
      expect(await ask(master, acquiring([key], 'one'))).toMatchObject(WRONGTYPE);
      expect(await ask(master, extending([key], 'one'))).toMatchObject(WRONGTYPE);
      expect(await ask(master, inspecting(key))).toMatchObject(WRONGTYPE);
      expect(await ask(master, releasing([key], 'one'))).toMatchObject(WRONGTYPE);
      expect(await ask(master, drawing([key], 'one'))).toMatchObject(WRONGTYPE);
      await ask(master, { op: 'leave', keys: [key], queues: [`queue:${key}`], waiter: 'me', isShared: true });
    }
    await ask(master, sharing(['ours'], 'one'));
    expect(await unshare('k', 'list', 'ours')).toMatchObject(WRONGTYPE);
    expect((await client.keys('*')).sort()).toEqual(['endless', 'k', 'list']);
    expect(await client.zrange('k', '0', '-1')).toEqual(['a member of another program']);
  });

  it('do not depend on a queue or a writer key of another type', async () => {
    await client.rpush(WRITER_OF_K, 'x');
    await client.set('queue:k', 'text');
    expect(await ask(master, sharing(['k'], 'one', { queue: QUEUE }))).toMatchObject(GRANTED);
    expect(await prolong('one')).toEqual(GRANTED);
    expect(await ask(master, acquiring(['k'], 'writer', { queue: QUEUE }))).toMatchObject(HELD);
    const want = { op: 'defer-readers', keys: ['k'], writerKeys: [WRITER_OF_K], waiter: 'me', waited: 0 } as const;
    expect(await ask(master, want)).toMatchObject(WRONGTYPE);
    expect(await unshare('k')).toEqual(GRANTED);
    expect(await ask(master, acquiring(['k'], 'writer'))).toEqual(GRANTED);
  });

  // Protocol 11.2 and 11.3
  it('are refused by a server without memory, which still extends and releases them', async () => {
    await share('one');
    await share('two');
    await client.config('SET', 'maxmemory', '1');
    try {
      expect(await share('three')).toMatchObject(OOM);
      expect(await ask(master, sharing(['a', 'b'], 'three'))).toMatchObject(OOM);
      expect(await heal('three')).toMatchObject(OOM);
      expect(await ask(master, picking(['p'], 'one'))).toMatchObject(OOM);
      expect(await prolong('one', 90_000)).toEqual(GRANTED);
      expect(await members()).toEqual({ 'shared one': 0, 'shared two': expect.any(Number) });
      expect(await unshare('k')).toEqual(GRANTED);
      expect(await client.keys('*')).toEqual(['k']);
    } finally {
      await client.config('SET', 'maxmemory', '0');
    }
  });

  it('never stay for ever when a permission is missing', async () => {
    for (const lost of ['zrange', 'pexpireat', 'zremrangebyscore']) {
      await client.call('ACL', 'SETUSER', 'default', `-${lost}`);
      try {
        const first = await share('one');
        if (lost === 'pexpireat') expect(first).toMatchObject({ kind: 'refused', code: 'NOPERM' });
        expect(await heal('one')).toMatchObject({ kind: 'refused' });
        // A key that never expires has -1.
        expect(await client.pttl('k')).not.toBe(-1);
      } finally {
        await client.call('ACL', 'SETUSER', 'default', `+${lost}`);
      }
      await ask(master, { ...releasing(['k'], 'one'), isShared: true });
      expect(await client.keys('*')).toEqual([]);
    }
  });

  it('that are no permits are passed over by a request for one of several keys', async () => {
    await share('one');
    await client.rpush('list', 'x');
    expect(await ask(master, picking(['k', 'list', 'free'], 'one'))).toEqual({ kind: 'granted', picked: 2 });
    expect(await ask(master, picking(['k', 'list'], 'two'))).toEqual({ kind: 'held', remaining: undefined });
  });

  /** Resolves when the process would be notified. */
  async function listening(): Promise<void> {
    while (!(await client.pubsub('CHANNELS')).includes('me')) await new Promise((resolve) => setImmediate(resolve));
    await ask(master, inspecting('k'));
  }
});
