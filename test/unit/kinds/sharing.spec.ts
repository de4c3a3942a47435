import { beforeEach, describe, expect, it } from '@jest/globals';
import { PermitBook } from '../../../lib/kinds/permit-book.js';
import { Keyspace } from '../../../lib/settings/keyspace.js';
import type { Lock } from '../../../lib/locks/lock.js';
import { resolveCall, resolveSettings } from '../../../lib/settings/settings.js';
import { Rig } from '../support/rig.js';

const SHARED = { mode: 'shared', ttl: 1_000, wait: 60_000 } as const;
const EXCLUSIVE = { ttl: 1_000, wait: 60_000 };

let rig: Rig;

/** Another process on the same masters. */
let other: Rig;

beforeEach(() => {
  rig = new Rig();
  other = rig.peer();
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

  it('wait for an exclusive holder, and are all granted without a timer when it releases', async () => {
    const writer = await rig.lock('a', EXCLUSIVE);
    const readers = [rig, rig, other, other].map((by) => rig.follow(by.acquire('a', SHARED)));
    await rig.clock.settle();
    expect(readers.map(({ state }) => state)).toEqual(Array.from(readers, () => 'pending'));
    await rig.settle(writer.release());
    expect(readers.map(({ state }) => state)).toEqual(Array.from(readers, () => 'fulfilled'));
  });

  it.each([
    ['in one process', () => rig],
    ['of another process', () => other],
  ])('do not pass an exclusive request that came before them, %s', async (_, late) => {
    const first = await rig.lock('a', { ...SHARED, extend: true });
    const writer = await rig.outcomeAfter(10, rig.acquire('a', EXCLUSIVE));
    const reader = await rig.outcomeAfter(4_000, late().acquire('a', SHARED));
    expect([writer.state, reader.state]).toEqual(['pending', 'pending']);
    await rig.settle(first.release());
    expect([writer.state, reader.state]).toEqual(['fulfilled', 'pending']);
    await rig.settle(writer.value?.release());
    expect(reader.state).toBe('fulfilled');
  });

  // Protocol 11.8
  it('are granted to all that wait in a process, when a writer of another one has come and gone', async () => {
    const first = await rig.lock('a', SHARED);
    const writer = await rig.outcomeAfter(10, other.acquire('a', EXCLUSIVE));
    const readers = Array.from({ length: 20 }, () => rig.follow(rig.acquire('a', SHARED)));
    await rig.clock.advance(10);
    await rig.settle(first.release());
    expect(writer.state).toBe('fulfilled');
    await writer.value?.release();
    for (let turn = 0; turn < 5; turn++) await rig.clock.settle();
    expect(readers.map(({ state }) => state)).toEqual(Array.from(readers, () => 'fulfilled'));
  });

  it('of several resources are granted without a timer when an exclusive request for one of them gives up', async () => {
    await rig.lock('z', { ...SHARED, extend: true });
    const stop = new AbortController();
    const writer = await rig.outcomeAfter(10, other.acquire('z', { ...EXCLUSIVE, signal: stop.signal }));
    // They wait at the home masters of their first resources, of which not all are that of the last one.
    const readers = ['a', 'b', 'c', 'd', 'e'].map((first) => rig.follow(rig.peer().acquire([first, 'z'], SHARED)));
    await rig.clock.advance(10);
    expect(readers.map(({ state }) => state)).toEqual(Array.from(readers, () => 'pending'));
    stop.abort();
    await rig.clock.settle();
    expect([writer, ...readers].map(({ state }) => state)).toEqual(['rejected', ...readers.map(() => 'fulfilled')]);
  });

  it('of several resources are held with others, and granted although an exclusive request for one more waits', async () => {
    const both = await rig.lock(['a', 'b'], { ...SHARED, extend: true });
    const writer = await rig.outcomeAfter(10, other.acquire(['a', 'c'], EXCLUSIVE));
    expect(await rig.lock(['b', 'c'], { ...SHARED, wait: 0 })).toMatchObject({ isHeld: true });
    expect(writer.state).toBe('pending');
    await both.release();
    expect(await other.lock('a', { ...EXCLUSIVE, wait: 0 })).toMatchObject({ isHeld: true });
  });

  it('are granted when an exclusive request gives up that has taken the places of another one', async () => {
    await rig.lock('a', { ...SHARED, extend: true });
    const writers = [100, 200].map((wait) => rig.follow(other.acquire('a', { ...EXCLUSIVE, wait })));
    await rig.clock.advance(10);
    const reader = await rig.outcomeAfter(150, rig.peer().acquire('a', SHARED));
    expect(reader.state).toBe('pending');
    await rig.clock.advance(40);
    expect([...writers, reader].map(({ state }) => state)).toEqual(['rejected', 'rejected', 'fulfilled']);
    expect(rig.queued).toEqual([0, 0, 0]);
  });

  it.each([1, 3])(
    'do not pass a nested exclusive request of their own process if they are nested, on %i masters',
    async (masters) => {
      rig = new Rig({ masters });
      const nested = (options: object) =>
        rig.follow(rig.redlock.acquire(['a'], resolveCall(resolveSettings({}), options), { isNested: true }));
      const first = await rig.peer().lock('a', { ...SHARED, extend: true });
      const writer = nested(EXCLUSIVE);
      await rig.clock.advance(10);
      const readers = Array.from({ length: 3 }, () => nested(SHARED));
      await rig.clock.advance(6_000);
      expect([writer, ...readers].map(({ state }) => state)).toEqual(Array(4).fill('pending'));
      await rig.settle(first.release());
      expect([writer, ...readers].map(({ state }) => state)).toEqual(['fulfilled', ...readers.map(() => 'pending')]);
      await rig.settle(writer.value?.release());
      for (let turn = 0; turn < 5; turn++) await rig.clock.settle();
      expect(readers.map(({ state }) => state)).toEqual(readers.map(() => 'fulfilled'));
    },
  );

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
    await expect(lock.fencingToken()).rejects.toMatchObject({
      ...{ name: 'RedlockConfigError', option: 'mode', requirement: "must be 'exclusive' to draw a fencing token" },
      message: 'the shared lock on "a" has no fencing token: draw it under an exclusive lock',
    });
    await expect(lock.state.get()).rejects.toThrow(
      'state needs an exclusive lock on one resource, and this is a shared lock on "a"',
    );
  });
});

const FIVE = { permits: 5, ttl: 1_000, wait: 60_000 };
const TWO = { ...FIVE, permits: 2 };

describe('Permits', () => {
  // Protocol 11.10
  it('are held by as many as there are, each with a number of its own', async () => {
    const locks: Lock[] = [];
    for (const by of [rig, other, rig, other, rig]) locks.push(await by.lock('api', { ...FIVE, wait: 0 }));
    expect(locks.map(({ slot }) => slot).sort()).toEqual([0, 1, 2, 3, 4]);
    const refused = await rig.outcomeOf(other.acquire('api', { ...FIVE, wait: 0 }));
    expect(refused.reason).toMatchObject({
      ...{ code: 'LOCK_NOT_ACQUIRED', resources: ['api'], permits: 5, holder: undefined },
      message: expect.stringContaining('none of the 5 permits of "api" was free: not acquired'),
    });
    const inspection = await rig.redlock.inspector.inspectPermits('api', 5);
    expect(inspection).toMatchObject({ taken: 5, permits: 5 });
    expect(inspection.slots.map(({ slot, state }) => [slot, state])).toEqual(
      [0, 1, 2, 3, 4].map((slot) => [slot, 'held']),
    );
    await Promise.all(locks.map((lock) => lock.release()));
    expect(await rig.redlock.inspector.inspectPermits('api', 5)).toMatchObject({ taken: 0 });
    expect([rig.keys, rig.queued]).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ]);
    expect([rig, other].map(({ redlock }) => redlock['permitBook']['usages'].size)).toEqual([0, 0]);
  });

  it('have one line of waiters, which an inspection counts once', async () => {
    await rig.lock('api', TWO);
    await rig.lock('api', TWO);
    const waiting = await rig.outcomeOf(other.acquire('api', TWO));
    expect(other.redlock.ownWaiting(1)).toMatchObject({ count: 1, locks: [{ resources: ['api'], permits: 2 }] });
    const inspection = await rig.redlock.inspector.inspectPermits('api', 2);
    expect(inspection.waiting).toBe(1);
    expect(inspection.slots.map((slot) => 'waiting' in slot)).toEqual([false, false]);
    await rig.clock.advance(TWO.wait);
    expect(waiting.state).not.toBe('pending');
  });

  it('are remembered by a busy process only as far as there are any', async () => {
    const book = new PermitBook(new Keyspace('lock:'), { token: () => 'x', fraction: () => 0 });
    book.claim('api', 0);
    for (let turn = 0; turn < 100; turn++) {
      const slot = book.firstOf('api', 3);
      expect([1, 2]).toContain(slot);
      book.claim('api', slot);
      book.free('api', slot, true);
    }
    expect(book.orderOf('api', 3)).toEqual([1, 2]);
    book.free('api', 0, true);
    expect(book.orderOf('api', 3)).toEqual([0, 1, 2]);
  });

  it('are passed on by a process that uses fewer of them, and keep it in line', async () => {
    const held = await Promise.all(Array.from({ length: 5 }, () => rig.lock('api', FIVE)));
    const few = await rig.outcomeOf(other.acquire('api', { ...FIVE, permits: 1, extend: true }));
    const last = held.find(({ slot }) => slot === 4);
    await rig.settle(last?.release());
    expect(few.state).toBe('pending');
    expect(await rig.lock('api', { ...FIVE, wait: 0 })).toMatchObject({ slot: 4 });
    await held.find(({ slot }) => slot === 0)?.release();
    await rig.clock.advance(1_000);
    expect(few.value?.slot).toBe(0);
  });

  // Protocol 11.11
  it('are passed on by a waiter that is notified of any of them when its budget has ended', async () => {
    const held = [await rig.lock('api', TWO), await rig.lock('api', TWO)];
    const hasty = await rig.outcomeOf(other.acquire('api', { ...TWO, wait: 100 }));
    const next = await rig.outcomeOf(rig.peer().acquire('api', TWO));
    rig.clock.stall(100);
    await held.find(({ slot }) => slot === 1)?.release();
    await rig.clock.settle();
    expect([hasty.state, next.value?.slot]).toEqual(['rejected', 1]);
    // Time has stood still: no poll and no end of a reservation has helped.
    await held.find(({ slot }) => slot === 0)?.release();
  });

  it('have fencing tokens, and no state', async () => {
    const lock = await rig.lock('api', TWO);
    expect(await lock.fencingToken()).toBeGreaterThan(0);
    await expect(lock.state.get()).rejects.toThrow(
      'state needs an exclusive lock on one resource, and this is a permit of "api"',
    );
  });

  it('do not exclude a lock of the same name', async () => {
    await rig.lock('api', { ...TWO, permits: 1 });
    expect(await rig.lock('api', { ttl: 1_000, wait: 0 })).toMatchObject({ isHeld: true, slot: undefined });
  });
});
