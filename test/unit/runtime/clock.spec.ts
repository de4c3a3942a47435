import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { elapsedBetween, type Timer } from '../../../lib/redlock/clock.js';
import { SystemClock, TimerQueue } from '../../../lib/runtime/system-clock.js';
import { SystemRandom } from '../../../lib/runtime/system.js';
import { fc } from '../../support/properties.js';
import { Rig } from '../support/rig.js';
import { throwing } from '../../support/throwing.js';

let rig: Rig;

beforeEach(() => void (rig = new Rig()));

const HOUR = 3_600_000;

// Protocol 3.1
it.each([
  ['agree', 10, 10, 10],
  ['differ by a suspended machine', 10, 500, 500],
  ['differ by a wall clock that was stepped back', 10, -HOUR, 10],
  ['both go back, although neither should', -5, -7, 0],
])('Elapsed time is the larger reading of two clocks: they %s', (_, monotonic, wall, expected) => {
  expect(elapsedBetween({ monotonic: 100, wall: 1e12 }, { monotonic: 100 + monotonic, wall: 1e12 + wall })).toBe(
    expected,
  );
});

describe('A lock that is held', () => {
  const request = { ttl: 9_000, extend: true };

  it('survives a wall clock that steps back by an hour, and is extended or expires in time', async () => {
    const lock = await rig.lock('a', { ttl: 9_000 });
    const extended = await rig.lock('b', request);
    await rig.clock.advance(1_000);
    rig.clock.stepWall(-HOUR);
    expect(lock.remaining()).toBe(9_000 - 92 - 1_000);
    await rig.clock.advance(7_907);
    expect(lock.isHeld).toBe(true);
    await rig.clock.advance(1);
    expect(lock.signal.aborted).toBe(true);
    await rig.clock.advance(60_000);
    expect(extended.isHeld).toBe(true);
  });

  it.each([
    ['in time to extend it', 3_000, false],
    ['after its end', 9_000, true],
  ])(
    'is checked within a second after a machine wakes up %s, however far away its timer is',
    async (_, slept, isLost) => {
      const lock = await rig.lock('a', request);
      const { signal } = lock;
      rig.clock.suspend(slept);
      await rig.clock.advance(1_000);
      // Nothing queries the lock in between: that would read the clock itself.
      expect([signal.aborted, rig.losses.length]).toEqual([isLost, isLost ? 1 : 0]);
      expect(rig.masters[0]!.times('extend')).toEqual(isLost ? [] : [1_000]);
    },
  );

  // Protocol 3.3
  it('is known to be lost even if the event loop is blocked and no timer can fire', async () => {
    const lock = await rig.lock('a', request);
    rig.clock.stall(8_907);
    expect([lock.isHeld, lock.remaining()]).toEqual([true, 1]);
    rig.clock.stall(1);
    expect([lock.isHeld, lock.remaining()]).toEqual([false, 0]);
    expect(lock.loss).toMatchObject({ cause: 'expired' });
  });

  it('is extended late if the event loop was blocked for less than the validity', async () => {
    const lock = await rig.lock('a', request);
    rig.clock.stall(8_000);
    await rig.clock.advance(0);
    expect(lock.remaining()).toBe(9_000 - 92);
  });
});

describe('The clock of this process', () => {
  it('calls back after input in a later turn, and forgets cancelled timers', async () => {
    const clock = new SystemClock();
    const events: string[] = [];
    clock.schedule(0, () => events.push('cancelled')).cancel();
    clock.schedule(0, () => events.push('unref')).unref();
    await new Promise<void>((resolve) => clock.afterInput(resolve));
    await new Promise<void>((resolve) => clock.schedule(2, resolve));
    expect(events).toEqual(['unref']);
  });

  it('needs one timer of the process for any number of timers, and none once all are cancelled', async () => {
    const clock = new SystemClock();
    // Other timers may end meanwhile, but none starts.
    const before = timersOfProcess();
    const timers = Array.from({ length: 1_000 }, (_, i) => clock.schedule(10_000 + (i % 100), () => undefined));
    expect(timersOfProcess()).toBeLessThanOrEqual(before + 1);
    for (const timer of timers) timer.cancel();
    expect(timersOfProcess()).toBeLessThanOrEqual(before);
    await new Promise<void>((resolve) => clock.schedule(1, resolve));
    expect(timersOfProcess()).toBeLessThanOrEqual(before);
  });

  it('never calls back early', async () => {
    const clock = new SystemClock();
    const fired: { delay: number; after: number }[] = [];
    await Promise.all(
      [7, 1, 12, 3, 3, 0, 9].map((delay) => {
        const start = performance.now();
        return new Promise<void>((resolve) => {
          clock.schedule(delay, () => {
            fired.push({ delay, after: performance.now() - start });
            resolve();
          });
        });
      }),
    );
    expect(fired).toHaveLength(7);
    for (const { delay, after } of fired) expect(after).toBeGreaterThanOrEqual(delay);
  });

  it('calls back in the asynchronous context of no call, whichever one made it or set the timer of the process', async () => {
    const storage = new AsyncLocalStorage<string>();
    const clock = storage.run('first request', () => new SystemClock());
    const context = (delay: number): Promise<string | undefined> =>
      new Promise((resolve) => void clock.schedule(delay, () => resolve(storage.getStore())));
    const seen = storage.run('request', () => [context(2), context(1)]);
    await expect(Promise.all(seen)).resolves.toEqual([undefined, undefined]);
  });

  it('lets timers with slack fire together', async () => {
    const clock = new SystemClock();
    const turns: number[] = [];
    let turn = 0;
    const delays = Array.from({ length: 20 }, (_, i) => 40 + i / 2);
    await Promise.all(
      delays.map(
        (delay) =>
          new Promise<void>((resolve) => {
            const callback = (): void => {
              if (turns.at(-1) !== turn) clock.afterTurn(() => turn++);
              turns.push(turn);
              resolve();
            };
            clock.schedule(delay, callback, 32);
          }),
      ),
    );
    // Ten milliseconds touch at most two cells of a grid of 32.
    expect(new Set(turns).size).toBeLessThanOrEqual(2);
  });
});

// Protocol 3.3
describe('A resume', () => {
  const SLEPT = 60_000;
  const nothing = (): void => undefined;

  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  /** Moves only the wall clock, as the suspension of a machine does. */
  function moveWall(milliseconds: number): void {
    jest.setSystemTime(Date.now() + milliseconds);
  }

  it.each([
    ['is reported once after the machine was suspended', (): void => moveWall(SLEPT), 1],
    ['is reported after a short sleep', (): void => moveWall(20), 1],
    ['is not reported when the wall clock is corrected gradually', (): void => moveWall(3), 0],
    ['is reported when the wall clock is set back', (): void => moveWall(-SLEPT), 1],
    ['is not reported when time passes', nothing, 0],
  ])('%s', (_, happen, times) => {
    const clock = new SystemClock();
    const heard: number[] = [];
    for (let listener = 0; listener < 2; listener++) clock.onResume(() => heard.push(performance.now()));
    clock.schedule(SLEPT, nothing);
    for (let round = 1; round <= 2; round++) {
      jest.advanceTimersByTime(5_500);
      happen();
      const since = performance.now();
      jest.advanceTimersByTime(1_000);
      expect(heard).toHaveLength(2 * round * times);
      for (const at of heard.slice(-2)) expect(at - since).toBeLessThanOrEqual(1_000);
    }
    jest.advanceTimersByTime(5_000);
    expect(heard).toHaveLength(4 * times);
  });

  it.each<[string, number, () => void]>([
    ['before a later one', 10, () => undefined],
    ['that counts from an earlier reading', 300, () => jest.advanceTimersByTime(200)],
    ['that is more than a second away', 3_500, () => undefined],
  ])('makes a timer %s neither early nor late', (_, delay, happen) => {
    const clock = new SystemClock();
    const now = clock.read();
    let after = 0;
    happen();
    clock.schedule(delay, () => (after = performance.now() - now.monotonic), 0, now);
    clock.schedule(delay + 490, nothing);
    jest.advanceTimersByTime(5_000);
    expect(after).toBeGreaterThanOrEqual(delay);
    expect(after).toBeLessThan(delay + 2);
  });

  it('needs no timer of the process while nothing is scheduled', () => {
    const clock = new SystemClock();
    clock.onResume(nothing);
    expect(jest.getTimerCount()).toBe(0);
    clock.schedule(10, nothing);
    jest.advanceTimersByTime(2_000);
    expect(jest.getTimerCount()).toBe(0);
  });
});

function timersOfProcess(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
}

describe('A queue of timers', () => {
  let queue: TimerQueue;
  let kept: boolean[];
  let ran: string[];

  beforeEach(() => {
    kept = [];
    ran = [];
    queue = new TimerQueue((keepsAlive) => kept.push(keepsAlive));
  });

  const add = (due: number, name = String(due)): Timer => queue.add(due, () => ran.push(name));

  it('reports whether any of its timers keeps the process alive', () => {
    const timer = add(1);
    const other = add(2);
    other.unref();
    other.unref();
    expect(kept).toEqual([true]);
    timer.cancel();
    expect([kept, queue.keepsAlive]).toEqual([[true, false], false]);
    other.cancel();
    add(3);
    queue.run(3);
    expect([kept, queue.keepsAlive]).toEqual([[true, false, true, false], false]);
  });

  it('lets a callback cancel and add timers, including timers that are due now', () => {
    const victim = add(5, 'victim');
    queue.add(4, () => {
      victim.cancel();
      add(4, 'added');
    });
    queue.run(5);
    expect(ran).toEqual(['added']);
  });

  it('continues after a callback that throws', () => {
    queue.add(1, throwing(new Error('from a callback')));
    add(2);
    expect(() => queue.run(2)).toThrow('from a callback');
    queue.run(2);
    expect(ran).toEqual(['2']);
  });

  it('does what a sorted list does', () => {
    const action = fc.record({ due: fc.nat(40), cancel: fc.option(fc.nat(60)), until: fc.option(fc.nat(40)) });
    fc.assert(
      fc.property(fc.array(action, { maxLength: 80 }), (actions) => {
        const queue = new TimerQueue(() => undefined);
        const pending: { id: number; due: number; timer: Timer }[] = [];
        const ran: number[] = [];
        const expected: number[] = [];
        actions.forEach(({ due, cancel, until }, id) => {
          pending.push({ id, due, timer: queue.add(due, () => ran.push(id)) });
          const victim = pending.findIndex((timer) => timer.id === cancel);
          if (victim >= 0) {
            const { timer } = pending.splice(victim, 1)[0]!;
            timer.cancel();
            timer.cancel();
          }
          if (until === null) return;
          queue.run(until);
          const over = pending.filter((timer) => timer.due <= until).sort((a, b) => a.due - b.due || a.id - b.id);
          expected.push(...over.map((timer) => timer.id));
          for (const timer of over) pending.splice(pending.indexOf(timer), 1);
        });
        expect(ran).toEqual(expected);
        expect(queue.nextDue).toBe(pending.length === 0 ? undefined : Math.min(...pending.map(({ due }) => due)));
        expect(queue.keepsAlive).toBe(pending.length > 0);
      }),
    );
  });
});

describe('Randomness', () => {
  it('gives unique tokens of 21 bytes', () => {
    const random = new SystemRandom();
    const tokens = new Set(Array.from({ length: 10_000 }, () => random.token()));
    expect(tokens.size).toBe(10_000);
    for (const token of tokens) expect(token).toMatch(/^[\w-]{28}$/);
  });

  it('never uses the same bytes for a token and for what follows', () => {
    const random = new SystemRandom();
    const seen = new Set<string | number>();
    for (let i = 0; i < 2_000; i++) seen.add(random.token()).add(random.fraction());
    expect(seen.size).toBeGreaterThan(3_990);
  });
});
