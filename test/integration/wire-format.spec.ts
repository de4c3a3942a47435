import { describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { Keyspace } from '../../lib/settings/keyspace.js';
import { acquiring, ask, picking, releasing } from '../support/ask.js';
import { eventually } from '../support/eventually.js';
import { Contender } from '../support/redlocks.js';
import { sharedMasters } from './support/shared-masters.js';

const OPTIONS = { ttl: 500, maxTtl: 500, restartGuard: true };

const masters = sharedMasters(1);

// Instances of two versions share their masters during a rolling deployment. A failure here is a breaking change,
// however small it looks: see the policy in RELEASING.md.
// Protocol 2.3
describe('The wire format that versions of this library share on a master', () => {
  it('consists of a key, a queue, a marker and a channel with fixed names and types', async () => {
    await using redis = disposable(new Redis(masters.servers[0]!.port));
    await using contender = await Contender.on(masters.urls, OPTIONS);
    await redis.set('lock:order:1', 'f'.repeat(40), 'PX', 60_000);
    const waiting = contender.acquire(['order:1'], 500, { wait: 15_000 });
    await eventually(async () => (await redis.exists('lock:\0queue:order:1')) === 1);

    const [waiter, since] = await redis.zrange('lock:\0queue:order:1', '0', '-1', 'WITHSCORES');
    expect(waiter).toMatch(/^lock:\0wake:[\w-]{28}$/);
    expect(Math.abs(Number(since) - Date.now())).toBeLessThan(60_000);
    await expect(redis.pubsub('CHANNELS')).resolves.toContain(waiter);

    // Does what a release by another version does.
    await redis.zpopmin('lock:\0queue:order:1');
    await redis.set('lock:order:1', `reserved for ${waiter}`, 'PX', 60_000);
    await redis.publish(waiter!, 'lock:order:1');

    const lock = await waiting;
    const names = (await redis.keys('*')).sort();
    await expect(Promise.all(names.map(async (name) => [name, await redis.type(name)]))).resolves.toEqual([
      ['lock:\0run', 'hash'],
      ['lock:order:1', 'string'],
    ]);
    await expect(redis.get('lock:order:1')).resolves.toMatch(/^[\w-]{28}@[0-9a-z]+@unnamed$/);
    await lock.release();
  });

  it('includes the counters of drawn tokens and the fields of the marker', async () => {
    await using redis = disposable(new Redis(masters.servers[0]!.port));
    await using holder = await Contender.on(masters.urls, OPTIONS);
    const lock = await holder.acquire(['order:1'], 500, { wait: 5_000 });
    // The field determines which counter makes a token grow. A different field would start a new counter.
    const token = await lock.fencingToken();
    expect(await redis.type('lock:\0fences')).toBe('hash');
    expect(await redis.hgetall('lock:\0fences')).toEqual({ '45': String(token) });
    const marker = await redis.hgetall('lock:\0run');
    expect(marker).toEqual({ run: expect.stringMatching(/^[0-9a-f]{40}$/), from: expect.stringMatching(/^\d{13}$/) });
    expect(Number(marker['from'])).toBeLessThanOrEqual(Date.now());
    await lock.release();
  });

  it('includes shared keys, their waiters, their writerKeys and permits', async () => {
    await using redis = disposable(new Redis(masters.servers[0]!.port));
    await using contender = await Contender.on(masters.urls, { ...OPTIONS, restartGuard: false });
    const [master] = contender.masters;
    const names = new Keyspace('lock:');
    const [key, writerKey, slot] = [names.keyOf('order:1'), names.writerKeyOf('order:1'), names.slotOf('order:1', 2)];
    await ask(master!, { ...acquiring([key], 'f@1@x'), sharing: { writerKeys: [writerKey], waited: 0 } });
    await ask(master!, { op: 'defer-readers', keys: [key], writerKeys: [writerKey], waiter: 'process', waited: 1_000 });
    await ask(master!, picking([slot], 'f@1@x'));

    const stored = (await redis.keys('*')).sort();
    expect(stored).toEqual(['lock:\0permit:2:order:1', 'lock:\0queue:order:1\0writer', 'lock:order:1']);
    expect(await redis.get(slot)).toBe('f@1@x');
    const [member, end] = await redis.zrange(key, '0', '-1', 'WITHSCORES');
    expect([member, end]).toEqual(['shared f@1@x', expect.stringMatching(/^\d{13}$/)]);
    const [, arrival] = /^(\d{13}) process$/.exec((await redis.get(writerKey))!)!;
    const [seconds] = await redis.time();
    expect(Number(arrival)).toBeLessThanOrEqual(Number(seconds) * 1_000);
    expect(await redis.pttl(writerKey)).toBeGreaterThan(0);

    // A waiter that a process of another version has left, and that is not there any more.
    await redis.set('lock:order:2', 'f'.repeat(40), 'PX', 60_000);
    await redis.zadd('lock:\0queue:order:2', 1, 'shared reader');
    const queues = ['lock:\0queue:order:2'];
    await ask(master!, { ...releasing(['lock:order:2'], 'f'.repeat(40)), queues });
    expect(await redis.exists('lock:\0queue:order:2', 'lock:order:2')).toBe(0);
  });

  it('is respected when another version has written it', async () => {
    await using redis = disposable(new Redis(masters.servers[0]!.port));
    const [, run] = /run_id:(\w+)/.exec(await redis.info('server'))!;
    await redis.hset('lock:\0run', { run, from: Date.now() - 1 });
    await redis.hset('lock:\0fences', '45', '9000000000000000');
    await redis.set('lock:order:2', 'f'.repeat(40), 'PX', 60_000);

    await using contender = await Contender.on(masters.urls, OPTIONS);
    const [status] = contender.redlock.masters.status().masters;
    expect(status).toMatchObject({ state: 'voting' });
    await expect(contender.acquire('order:2', 500, { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
    const lock = await contender.acquire('order:1', 500);
    await expect(lock.fencingToken()).resolves.toBe(9_000_000_000_000_001);
    await lock.release();
  });
});

function disposable(redis: Redis): Redis & AsyncDisposable {
  return Object.assign(redis, { [Symbol.asyncDispose]: async () => redis.disconnect() });
}
