import { beforeEach, describe, expect, it } from '@jest/globals';
import { Rig } from '../../support/rig.js';

const SHARED = { mode: 'shared', ttl: 1_000, wait: 60_000 } as const;
const EXCLUSIVE = { ttl: 1_000, wait: 60_000 };

let rig: Rig;
/** Another process on the same masters. */
let other: Rig;

beforeEach(() => {
  rig = new Rig();
  other = new Rig({}, rig);
});

describe('Shared locks', () => {
  it('are held by many at the same time, in one process and in several', async () => {
    const locks = await Promise.all([rig, rig, other, other].map((by) => by.lock('a', SHARED)));
    expect(locks.map(({ isHeld, mode }) => [isHeld, mode])).toEqual(Array.from(locks, () => [true, 'shared']));
    expect(await rig.redlock.inspector.inspect('a')).toMatchObject({ state: 'held', sharedBy: 4 });
    await Promise.all(locks.map((lock) => lock.release()));
    expect(await rig.redlock.inspector.inspect('a')).toMatchObject({ state: 'free', sharedBy: undefined });
    expect(rig.masters.map(({ memory }) => memory.size)).toEqual([0, 0, 0]);
  });

  it.each([
    ['of the same process', () => rig],
    ['of another process', () => other],
  ])('exclude an exclusive request %s until the last of them is released', async (_, by) => {
    const [first, second] = [await rig.lock('a', SHARED), await rig.lock('a', SHARED)];
    const writer = rig.follow(by().acquire('a', { ...EXCLUSIVE, extend: true }));
    await rig.clock.settle();
    await first.release();
    await rig.clock.settle();
    expect(writer.state).toBe('pending');
    await second.release();
    await rig.clock.settle();
    expect(writer.state).toBe('fulfilled');
    expect(await rig.redlock.inspector.inspect('a')).toMatchObject({ state: 'held', sharedBy: undefined });
  });

  it('wait for an exclusive holder, and are all granted without a timer when it releases', async () => {
    const writer = await rig.lock('a', EXCLUSIVE);
    const readers = [rig, rig, other, other].map((by) => rig.follow(by.acquire('a', SHARED)));
    await rig.clock.settle();
    expect(readers.map(({ state }) => state)).toEqual(Array.from(readers, () => 'pending'));
    await writer.release();
    await rig.clock.settle();
    expect(readers.map(({ state }) => state)).toEqual(Array.from(readers, () => 'fulfilled'));
  });

  it.each([
    ['in one process', () => rig],
    ['of another process', () => other],
  ])('do not pass an exclusive request that came before them, %s', async (_, late) => {
    const first = await rig.lock('a', { ...SHARED, extend: true });
    const writer = rig.follow(rig.acquire('a', EXCLUSIVE));
    await rig.clock.advance(10);
    const reader = rig.follow(late().acquire('a', SHARED));
    await rig.clock.advance(4_000);
    expect([writer.state, reader.state]).toEqual(['pending', 'pending']);
    await first.release();
    await rig.clock.settle();
    expect([writer.state, reader.state]).toEqual(['fulfilled', 'pending']);
    await writer.value?.release();
    await rig.clock.settle();
    expect(reader.state).toBe('fulfilled');
  });

  // Protocol 11.8
  it('are granted to all that wait in a process, when a writer of another one has come and gone', async () => {
    const first = await rig.lock('a', SHARED);
    const writer = rig.follow(other.acquire('a', EXCLUSIVE));
    await rig.clock.advance(10);
    const readers = Array.from({ length: 20 }, () => rig.follow(rig.acquire('a', SHARED)));
    await rig.clock.advance(10);
    await first.release();
    await rig.clock.settle();
    expect(writer.state).toBe('fulfilled');
    await writer.value?.release();
    for (let turn = 0; turn < 5; turn++) await rig.clock.settle();
    expect(readers.map(({ state }) => state)).toEqual(Array.from(readers, () => 'fulfilled'));
  });

  it('are granted without a timer when the exclusive request that they wait behind gives up', async () => {
    await rig.lock('a', { ...SHARED, extend: true });
    const stop = new AbortController();
    const writer = rig.follow(other.acquire('a', { ...EXCLUSIVE, signal: stop.signal }));
    await rig.clock.advance(10);
    const reader = rig.follow(new Rig({}, rig).acquire('a', SHARED));
    await rig.clock.advance(10);
    expect(reader.state).toBe('pending');
    stop.abort();
    await rig.clock.settle();
    expect([writer.state, reader.state]).toEqual(['rejected', 'fulfilled']);
  });

  it('are granted on a free resource, although a request for that and a held one waits', async () => {
    await rig.lock('a', { ...SHARED, extend: true });
    const writer = rig.follow(other.acquire(['a', 'b'], EXCLUSIVE));
    await rig.clock.advance(10);
    expect(await rig.lock('b', { ...SHARED, wait: 0 })).toMatchObject({ isHeld: true });
    expect(writer.state).toBe('pending');
  });

  it('do not pass an exclusive request that waits behind one of its process that gives up', async () => {
    const first = await rig.lock('a', SHARED);
    const hasty = rig.follow(other.acquire('a', { ...EXCLUSIVE, wait: 100 }));
    await rig.clock.advance(10);
    const writer = rig.follow(other.acquire('a', EXCLUSIVE));
    await rig.clock.advance(10);
    const third = new Rig({}, rig);
    const readers = [rig, third].map((by) => rig.follow(by.acquire('a', SHARED)));
    await rig.clock.advance(80);
    expect([hasty, writer, ...readers].map(({ state }) => state)).toEqual(['rejected', ...Array(3).fill('pending')]);
    await first.release();
    await rig.clock.settle();
    expect([writer, ...readers].map(({ state }) => state)).toEqual(['fulfilled', 'pending', 'pending']);
    await writer.value?.release();
    await rig.clock.settle();
    expect(readers.map(({ state }) => state)).toEqual(['fulfilled', 'fulfilled']);
  });

  it('are granted when an exclusive request gives up that has taken the places of another one', async () => {
    await rig.lock('a', { ...SHARED, extend: true });
    const writers = [100, 200].map((wait) => rig.follow(other.acquire('a', { ...EXCLUSIVE, wait })));
    await rig.clock.advance(10);
    const reader = rig.follow(new Rig({}, rig).acquire('a', SHARED));
    await rig.clock.advance(150);
    expect(reader.state).toBe('pending');
    await rig.clock.advance(40);
    expect([...writers, reader].map(({ state }) => state)).toEqual(['rejected', 'rejected', 'fulfilled']);
    expect(rig.masters.map(({ memory }) => memory.queued)).toEqual([0, 0, 0]);
  });

  it('find no entry of an exclusive request that was granted by a poll of all masters', async () => {
    await rig.lock('a', { ...EXCLUSIVE, ttl: 30_000 });
    const writer = rig.follow(other.acquire('a', EXCLUSIVE));
    await rig.clock.settle();
    // The masters lose the lock and keep the queues, so that nothing notifies the waiter.
    for (const { memory } of rig.masters) memory.flush();
    await rig.clock.advance(1_000);
    expect(writer.state).toBe('fulfilled');
    expect(rig.masters.map(({ memory }) => memory.queued)).toEqual([0, 0, 0]);
    await writer.value?.release();
    expect((await new Rig({}, rig).lock('a', SHARED)).isHeld).toBe(true);
  });

  it('may be taken again after the exclusive request has given up', async () => {
    const first = await rig.lock('a', { ...SHARED, extend: true });
    const writer = rig.follow(other.acquire('a', { ...EXCLUSIVE, wait: 500 }));
    await rig.clock.advance(501);
    expect(writer.reason).toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
    expect(await rig.lock('a', { ...SHARED, wait: 0 })).toMatchObject({ isHeld: true });
    await first.release();
  });

  it('end one by one: a crashed holder blocks an exclusive request for its own ttl', async () => {
    const crashed = new Rig({}, rig);
    await crashed.lock('a', { ...SHARED, ttl: 300 });
    const alive = await rig.lock('a', { ...SHARED, extend: true });
    await rig.clock.advance(200);
    await alive.release();
    const writer = rig.follow(other.acquire('a', EXCLUSIVE));
    await rig.clock.advance(90);
    expect(writer.state).toBe('pending');
    await rig.clock.advance(50);
    expect(writer.state).toBe('fulfilled');
  });

  it('are extended, and healed on a master that has lost them', async () => {
    const lock = await rig.lock('a', { ...SHARED, extend: true });
    const [first] = rig.masters;
    first?.memory.flush();
    await rig.clock.advance(5_000);
    expect(lock.isHeld).toBe(true);
    expect(await rig.redlock.inspector.inspect('a')).toMatchObject({ sharedBy: 1 });
    expect(first?.memory.size).toBe(1);
  });

  it('have neither a fencing token nor a state', async () => {
    const lock = await rig.lock('a', SHARED);
    await expect(lock.fencingToken()).rejects.toThrow('has no fencing token: draw it under an exclusive lock');
    await expect(lock.state.get()).rejects.toThrow('needs an exclusive lock on one resource');
  });

  it('cover several resources', async () => {
    const both = await rig.lock(['a', 'b'], SHARED);
    expect(await other.lock('b', { ...SHARED, wait: 0 })).toMatchObject({ isHeld: true });
    const refused = rig.follow(other.acquire('a', { ...EXCLUSIVE, wait: 0 }));
    await rig.clock.settle();
    expect(refused.reason).toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
    await both.release();
    expect(await other.lock('a', { ...EXCLUSIVE, wait: 0 })).toMatchObject({ isHeld: true });
  });
});
