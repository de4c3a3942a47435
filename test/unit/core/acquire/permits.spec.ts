import { beforeEach, describe, expect, it } from '@jest/globals';
import { PermitBook } from '../../../../lib/core/acquire/permit-book.js';
import { Keyspace } from '../../../../lib/core/keyspace.js';
import type { Lock } from '../../../../lib/core/lock.js';
import { Rig } from '../../support/rig.js';

const FIVE = { permits: 5, ttl: 1_000, wait: 60_000 };
const TWO = { ...FIVE, permits: 2 };

let rig: Rig;
/** Another process on the same masters. */
let other: Rig;

beforeEach(() => {
  rig = new Rig();
  other = new Rig({}, rig);
});

describe('Permits', () => {
  // Protocol 11.10
  it('are held by as many as there are, each with a number of its own', async () => {
    const locks: Lock[] = [];
    for (const by of [rig, other, rig, other, rig]) locks.push(await by.lock('api', { ...FIVE, wait: 0 }));
    expect(locks.map(({ slot }) => slot).sort()).toEqual([0, 1, 2, 3, 4]);
    const refused = rig.follow(other.acquire('api', { ...FIVE, wait: 0 }));
    await rig.clock.settle();
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
    expect(rig.masters.map(({ memory }) => [memory.size, memory.queued])).toEqual([
      [0, 0],
      [0, 0],
      [0, 0],
    ]);
  });

  it.each([
    ['of the same process', () => rig],
    ['of another process', () => other],
  ])('are waited for by the next one %s, which gets the one that is released', async (_, by) => {
    const [first, second] = [await rig.lock('api', TWO), await rig.lock('api', TWO)];
    const third = rig.follow(by().acquire('api', TWO));
    await rig.clock.settle();
    expect(third.state).toBe('pending');
    const slot = second.slot;
    await second.release();
    await rig.clock.settle();
    expect(third.value?.slot).toBe(slot);
    expect(first.isHeld).toBe(true);
  });

  it('have one line of waiters, which an inspection counts once', async () => {
    await rig.lock('api', TWO);
    await rig.lock('api', TWO);
    const waiting = rig.follow(other.acquire('api', TWO));
    await rig.clock.settle();
    expect(other.redlock.ownWaiting(1)).toMatchObject({ count: 1, locks: [{ resources: ['api'], permits: 2 }] });
    const inspection = await rig.redlock.inspector.inspectPermits('api', 2);
    expect(inspection.waiting).toBe(1);
    expect(inspection.slots.map((slot) => 'waiting' in slot)).toEqual([false, false]);
    await rig.clock.advance(TWO.wait);
    expect(waiting.state).not.toBe('pending');
  });

  it('go to the processes in the order in which they came', async () => {
    const held = [await rig.lock('api', TWO), await rig.lock('api', TWO)];
    const third = new Rig({}, rig);
    const order: string[] = [];
    for (const [name, by] of Object.entries({ other, third, rig })) {
      void by.acquire('api', { ...TWO, extend: true }).then(() => order.push(name));
      await rig.clock.advance(1);
    }
    // A process passes a permit on to its own waiters within 10 ms only.
    await rig.clock.advance(10);
    for (const lock of held) {
      await lock.release();
      await rig.clock.settle();
    }
    expect(order).toEqual(['other', 'third']);
  });

  it('go to the callers of one process in the order in which they came', async () => {
    const held = [await rig.lock('api', TWO), await other.lock('api', TWO)];
    const order: number[] = [];
    for (let caller = 1; caller <= 4; caller++) {
      void rig.acquire('api', TWO).then(async (lock) => {
        order.push(caller);
        await new Promise<void>((resolve) => void rig.clock.schedule(5, resolve));
        await lock.release();
      });
      await rig.clock.advance(1);
    }
    for (const lock of held) await lock.release();
    await rig.clock.advance(5_000);
    expect(order).toEqual([1, 2, 3, 4]);
  });

  it('are remembered by a busy process only as far as there are any', async () => {
    const book = new PermitBook(new Keyspace('lock:'), { token: () => 'x', fraction: () => 0 });
    book.claim('api', 0);
    for (let turn = 0; turn < 100; turn++) {
      const slot = book.guess('api', 3);
      expect([1, 2]).toContain(slot);
      book.claim('api', slot);
      book.free('api', slot, true);
    }
    expect(book.orderOf('api', 3)).toEqual([1, 2]);
    book.free('api', 0, true);
    expect(book.orderOf('api', 3)).toEqual([0, 1, 2]);
  });

  it('are never held by more than there are, while many take and release them', async () => {
    let [running, most, done] = [0, 0, 0];
    const work = async (by: Rig, turns: number): Promise<void> => {
      for (let turn = 0; turn < turns; turn++) {
        const lock = await by.acquire('api', { ...FIVE, extend: true });
        most = Math.max(most, ++running);
        await new Promise<void>((resolve) => void by.clock.schedule(3, resolve));
        running--;
        await lock.release();
        done++;
      }
    };
    const third = new Rig({}, rig);
    const all = Promise.all([rig, other, third].flatMap((by) => Array.from({ length: 8 }, () => work(by, 5))));
    await rig.clock.advance(20_000);
    await all;
    expect([most, done]).toEqual([5, 120]);
  });

  it('are passed on by a process that uses fewer of them, and keep it in line', async () => {
    const held = await Promise.all(Array.from({ length: 5 }, () => rig.lock('api', FIVE)));
    const few = rig.follow(other.acquire('api', { ...FIVE, permits: 1, extend: true }));
    await rig.clock.settle();
    const last = held.find(({ slot }) => slot === 4);
    await last?.release();
    await rig.clock.settle();
    expect(few.state).toBe('pending');
    expect(await rig.lock('api', { ...FIVE, wait: 0 })).toMatchObject({ slot: 4 });
    await held.find(({ slot }) => slot === 0)?.release();
    await rig.clock.advance(1_000);
    expect(few.value?.slot).toBe(0);
  });

  // Protocol 11.11
  it('are passed on by a waiter that is notified of any of them when its budget has ended', async () => {
    const held = [await rig.lock('api', TWO), await rig.lock('api', TWO)];
    const hasty = rig.follow(other.acquire('api', { ...TWO, wait: 100 }));
    await rig.clock.settle();
    const next = rig.follow(new Rig({}, rig).acquire('api', TWO));
    await rig.clock.settle();
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

  it('are of one resource', async () => {
    await expect(rig.acquire(['a', 'b'], TWO)).rejects.toThrow(
      'permits belong to one resource, not to several: "a", "b". Give one name, or leave out `permits`',
    );
  });

  it('are forgotten by a process that neither holds nor wants one', async () => {
    const lock = await rig.lock('api', { ...FIVE, permits: 1, wait: 0 });
    const refused = rig.follow(other.acquire('api', { ...FIVE, permits: 1, wait: 0 }));
    await rig.clock.settle();
    expect(refused.state).toBe('rejected');
    expect(other.redlock['permitBook']['usages'].size).toBe(0);
    await lock.release();
    expect(rig.redlock['permitBook']['usages'].size).toBe(0);
  });
});
