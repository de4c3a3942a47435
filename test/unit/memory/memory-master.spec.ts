import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { LockNotAcquiredError } from '../../../lib/waiting/lock-not-acquired.error.js';
import type { MasterReply, MasterRequest } from '../../../lib/masters/master.interface.js';
import { ManualClock } from '../../../lib/memory/manual-clock.js';
import { MemoryMaster } from '../../../lib/memory/memory-master.js';
import { carryOut } from '../../../lib/memory/operations.js';
import { memoryLockService, memoryMasters } from '../../../lib/testing/index.js';
import { acquiring, drawing, picking } from '../../support/ask.js';

function setUp() {
  const clock = new ManualClock();
  const master = new MemoryMaster(clock);
  const ask = (request: MasterRequest): Promise<MasterReply> => new Promise((resolve) => master.ask(request, resolve));
  const acquire = (token: string, keys = ['a'], ttl = 1_000) => ask(acquiring(keys, token, { ttl }));
  const release = (token: string) =>
    ask({ op: 'release', keys: ['a'], queues: ['queue of a'], token, keepFor: 0, ttl: 1_000 });
  return { clock, master, ask, acquire, release };
}

describe('A master in memory', () => {
  it('executes and answers a request only after `ask` has returned', async () => {
    const { acquire, master } = setUp();
    const answer = acquire('x');
    expect(master.size).toBe(0);
    expect(await answer).toEqual({ kind: 'granted' });
    expect(master.size).toBe(1);
  });

  it('reports in the answer to a release that others wait for the key, also once it is reserved', async () => {
    const { master, ask, acquire, release } = setUp();
    master.listen('waiter', () => undefined);
    await acquire('x');
    const queue = { queues: ['queue of a'], waiter: 'waiter', waited: 0, reserveFor: 50 };
    expect(await ask(acquiring(['a'], 'y', { ttl: 1_000, queue }))).toMatchObject({ kind: 'held' });
    expect(await release('other')).toMatchObject({ kind: 'held' });
    expect(await release('x')).toEqual({ kind: 'granted', hasWaiters: true });
    expect(await release('other')).toEqual({ kind: 'gone', hasWaiters: true });
  });

  it('forgets expired keys that no request names again', async () => {
    const { clock, master, acquire } = setUp();
    for (let i = 0; i < 1_000; i++) await acquire('x', [`key:${i}`]);
    await clock.advance(1_000);
    for (let i = 0; i < 500; i++) await acquire('x', ['a'], 1);
    expect((master as unknown as { data: { entries: Map<string, unknown> } }).data.entries.size).toBeLessThan(10);
  });

  it('cuts off requests in flight when it is taken down, even during a pause, and keeps its keys', async () => {
    const { master, acquire } = setUp();
    const ready: string[] = [];
    for (const service of ['one', 'two']) master.onReady(() => ready.push(service));
    await acquire('old', ['b']);
    const one = acquire('x');
    master.takeDown();
    expect(await one).toMatchObject({ kind: 'unreachable', sent: true });
    master.bringUp();
    expect(ready).toEqual(['one', 'two']);
    master.pause();
    const two = acquire('x');
    master.takeDown();
    expect(await two).toMatchObject({ kind: 'unreachable', sent: true });
    expect(master.size).toBe(1);
  });

  it('loses its keys and counters in a flush: the next token is no larger than the first', async () => {
    const { ask, acquire, master } = setUp();
    const draw = () => ask(drawing(['a'], 'x', { atLeast: 0 }));
    await acquire('x');
    const first = await draw();
    expect(await draw()).not.toEqual(first);
    master.flush();
    expect(master.size).toBe(0);
    await acquire('x');
    expect(await draw()).toEqual(first);
  });

  it('comes in any number, each with its own name', () => {
    expect(memoryMasters().map(({ name }) => name)).toEqual(['memory-1']);
    expect(memoryMasters(3).map(({ name }) => name)).toEqual(['memory-1', 'memory-2', 'memory-3']);
  });
});

describe('A manual clock', () => {
  it('fires timers in the order of their time, at their time, and not before it is advanced', async () => {
    const clock = new ManualClock();
    const events: [string, number][] = [];
    const note = (name: string) => () => events.push([name, clock.read().monotonic]);
    clock.schedule(30, note('c'));
    clock.schedule(10, note('a'));
    clock.schedule(20, note('b1'));
    clock.schedule(20, note('b2'));
    clock.schedule(0, note('now'));
    await clock.settle();
    expect(events).toEqual([]);
    await clock.advance(0);
    await clock.advance(29);
    expect(events).toEqual([
      ['now', 0],
      ['a', 10],
      ['b1', 20],
      ['b2', 20],
    ]);
    expect(clock.pendingTimers).toBe(1);
    expect(clock.read().monotonic).toBe(29);
  });

  it('forgets a cancelled timer', async () => {
    const clock = new ManualClock();
    const timer = clock.schedule(10, () => expect(true).toBe(false)).unref();
    timer.cancel();
    timer.cancel();
    await clock.advance(100);
    expect(clock.pendingTimers).toBe(0);
  });

  it('moves only the wall when it is stepped or suspended, from the year 2000 on', () => {
    expect(new ManualClock().read().wall).toBe(Date.UTC(2000));
    const clock = new ManualClock(10_000);
    clock.stepWall(-3_000);
    clock.suspend(500);
    expect(clock.read()).toEqual({ monotonic: 0, wall: 7_500 });
  });
});

describe('Fake timers', () => {
  afterEach(() => void jest.useRealTimers());

  it('move locks without a clock of their own: they are extended, waited for, and lost', async () => {
    jest.useFakeTimers();
    const masters = memoryMasters(3);
    const [one, other] = [memoryLockService({ masters }), memoryLockService({ masters })];

    const lock = await one.acquire('a', { ttl: '10s', extend: true });
    const waiting = other.acquire('a', { ttl: '10s', wait: '1m', extend: false });
    await jest.advanceTimersByTimeAsync(30_000);
    expect(lock.isHeld).toBe(true);
    await lock.release();
    await jest.advanceTimersByTimeAsync(100);
    const next = await waiting;
    expect(next.isHeld).toBe(true);
    await jest.advanceTimersByTimeAsync(10_000);
    expect(next.loss).toMatchObject({ cause: 'expired' });
  });

  it('end locks by a later date, like a machine that was suspended, and not by an earlier one', async () => {
    jest.useFakeTimers();
    const lock = await memoryLockService().acquire('a', { ttl: '10s' });
    jest.setSystemTime(Date.now() - 3_600_000);
    expect(lock.isHeld).toBe(true);
    jest.setSystemTime(Date.now() + 7_200_000);
    expect(lock.isHeld).toBe(false);
  });

  it('leave real timers to the locks of the next test', async () => {
    const locks = memoryLockService();
    jest.useFakeTimers();
    await (await locks.acquire('a', { ttl: '10s' })).release();
    jest.useRealTimers();
    await locks.acquire('a', { ttl: '10s' });
    await expect(locks.acquire('a', { wait: 20 })).rejects.toBeInstanceOf(LockNotAcquiredError);
  });
});

it('Permits of which one does not expire are refused until another one ends', () => {
  const ends = new Map([
    ['a', -1],
    ['b', 500],
  ]);
  const data = { get: () => 'token', exists: () => true, pttl: (key: string) => ends.get(key) };
  const server = { data } as unknown as Parameters<typeof carryOut>[0];
  expect(carryOut(server, picking(['a', 'b'], 'mine', { ttl: 1_000 }))).toMatchObject({ kind: 'held', remaining: 500 });
});
