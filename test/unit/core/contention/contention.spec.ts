import { describe, expect, it } from '@jest/globals';
import type { AcquireOptions, LockService, ResourceContention } from 'nestjs-redlock';
import { ManualClock, memoryLockService, memoryMasters } from 'nestjs-redlock/testing';
import { Contention } from '../../../../lib/core/contention/contention.js';

/** Two processes on the same masters. */
function processes() {
  const clock = new ManualClock();
  const masters = memoryMasters(3, clock);
  const [one, two] = ['one', 'two'].map((instance) => memoryLockService({ clock, masters, instance })) as [
    LockService,
    LockService,
  ];
  /** Holds a lock for so many milliseconds. */
  const use = async (locks: LockService, resource: string, held: number, options?: AcquireOptions): Promise<void> => {
    const lock = await locks.acquire(resource, options);
    await new Promise<void>((resolve) => void clock.schedule(held, () => resolve()));
    await lock.release();
  };
  return { clock, masters, one, two, use };
}

function only(locks: LockService): ResourceContention {
  const [row, ...others] = locks.contention();
  expect(others).toEqual([]);
  return row!;
}

describe('Contention', () => {
  it('is unknown of locks that are acquired at once', async () => {
    const { one } = processes();
    for (const name of ['order:1', 'order:2']) await (await one.acquire(name)).release();
    expect(one.contention()).toEqual([]);
  });

  it('blames the time that a call waits on the instance that has the lock', async () => {
    const { clock, one, two, use } = processes();
    const calls = [use(one, 'order:1', 300), use(two, 'order:1', 1)];
    await clock.advance(400);
    await Promise.all(calls);
    expect(only(two)).toEqual({
      ...{ pattern: 'order:*', acquisitions: 1, waited: 1, unnamed: 0 },
      milliseconds: { sum: 300, max: 300, p99: 300 },
      holders: [{ instance: 'one', milliseconds: 300 }],
    });
    expect(one.contention()).toEqual([]);
  });

  it('blames this instance if another call of it has the lock, and otherwise the one that keeps both waiting', async () => {
    const { clock, one, two, use } = processes();
    const own = [use(one, 'order:1', 100), use(one, 'order:1', 1)];
    await clock.advance(200);
    await Promise.all(own);
    expect(only(one).holders).toEqual([{ instance: 'one', milliseconds: 100 }]);
    const calls = [use(one, 'order:1', 100)];
    await clock.settle();
    calls.push(use(two, 'order:1', 10));
    await clock.settle();
    calls.push(use(two, 'order:1', 10));
    await clock.advance(1_000);
    await Promise.all(calls);
    expect(only(two)).toMatchObject({
      ...{ waited: 2, unnamed: 0 },
      holders: [
        { instance: 'one', milliseconds: 200 },
        { instance: 'two', milliseconds: 10 },
      ],
    });
  });

  it('names the holder that refuses the first of several calls that came together', async () => {
    const { clock, one, two, use } = processes();
    const calls = [use(one, 'order:1', 200)];
    await clock.settle();
    for (let count = 0; count < 3; count++) calls.push(use(two, 'order:1', 10));
    await clock.advance(1_000);
    await Promise.all(calls);
    expect(only(two).holders).toEqual([
      { instance: 'one', milliseconds: 600 },
      { instance: 'two', milliseconds: 30 },
    ]);
  });

  it('names no holder while the first of several calls gets no answer', async () => {
    const { clock, masters, two } = processes();
    for (const master of masters) master.pause();
    const calls = Array.from({ length: 3 }, () => two.acquire('order:1', { wait: 500 }).catch(() => 'failed'));
    await clock.advance(2_000);
    expect(await Promise.all(calls)).toEqual(['failed', 'failed', 'failed']);
    expect(only(two)).toMatchObject({ waited: 3, holders: [] });
  });

  it('counts a wait that fails or is aborted, and a refusal without a wait', async () => {
    const { clock, one, two } = processes();
    await one.acquire('order:1');
    const controller = new AbortController();
    const calls = [{ wait: 50 }, { wait: 0 }, { signal: controller.signal }].map((options) =>
      two.acquire('order:1', options).catch(() => 'failed'),
    );
    await clock.advance(60);
    controller.abort(new Error('enough'));
    expect(await Promise.all(calls)).toEqual(['failed', 'failed', 'failed']);
    expect(only(two)).toMatchObject({ acquisitions: 3, waited: 2, milliseconds: { sum: 110, max: 60 } });
  });

  it('names no holder of permits, of shared locks, and while too few masters vote', async () => {
    const { clock, masters, one, two } = processes();
    await one.acquire('order:1', { permits: 1 });
    await one.acquire('cart:1', { mode: 'shared' });
    await one.acquire('stock:1');
    const wait = 50;
    const calls = [two.acquire('order:1', { permits: 1, wait }), two.acquire('cart:1', { wait })];
    const failed = calls.map((call) => call.catch(() => 'failed'));
    await clock.advance(60);
    for (const master of masters.slice(1)) master.pause();
    failed.push(two.acquire('stock:1', { wait: 500 }).catch(() => 'failed'));
    await clock.advance(2_000);
    await Promise.all(failed);
    const rows = two.contention().map(({ pattern, holders, unnamed, milliseconds }) => {
      expect(unnamed).toBe(milliseconds.sum);
      return [pattern, holders];
    });
    expect(rows.sort()).toEqual([
      ['cart:*', []],
      ['order:*', []],
      ['stock:*', []],
    ]);
  });

  it('adds up those kinds beyond a hundred that cost the least time, and not those that came last', () => {
    const contention = new Contention();
    for (let count = 0; count < 200; count++) contention.add([`refused${count}:1`], undefined);
    for (let count = 1; count <= 100; count++) contention.add([`kind${count}:1`], new Map([['one', count]]));
    for (let count = 1; count <= 10; count++) contention.add([`late${count}:1`], new Map([[undefined, 1_000]]));
    const { report } = contention;
    expect(report[0]).toMatchObject({ pattern: 'late1:*', milliseconds: { sum: 1_000 } });
    expect(report.find(({ pattern }) => pattern === 'other')).toEqual({
      ...{ pattern: 'other', acquisitions: 210, waited: 10, unnamed: 0 },
      ...{ milliseconds: { sum: 55, max: 10, p99: 10 }, holders: [{ instance: 'one', milliseconds: 55 }] },
    });
  });

  it('keeps a hundred kinds of resources and a hundred holders of each, and adds the others up', () => {
    const contention = new Contention();
    for (let count = 0; count < 150; count++) {
      contention.add([`kind${count}:1`], new Map([['one', 1]]));
      contention.add(['order:1'], new Map([[`web-${count}`, 1]]));
    }
    const { report } = contention;
    expect(report).toHaveLength(101);
    expect(report[0]).toMatchObject({ pattern: 'order:*', waited: 150, unnamed: 50, milliseconds: { sum: 150 } });
    expect(report[0]!.holders).toHaveLength(100);
    expect(report[1]).toMatchObject({ pattern: 'other', waited: 51 });
  });

  it('gives a quantile that is up to a tenth too large, and never more than the longest wait', () => {
    const contention = new Contention();
    const wait = (resource: string, taken: number): void => contention.add([resource], new Map([['one', taken]]));
    for (let taken = 1; taken <= 1_000; taken++) wait('many:1', taken);
    for (let count = 0; count < 199; count++) wait('equal:1', 100);
    wait('equal:1', 100_000);
    wait('none:1', 0);
    const [many, equal, none] = contention.report.map(({ milliseconds }) => milliseconds);
    expect(many).toMatchObject({ sum: 500_500, max: 1_000 });
    expect(many!.p99).toBeGreaterThanOrEqual(990);
    expect(many!.p99).toBeLessThanOrEqual(1_000);
    expect(equal!.p99).toBeGreaterThanOrEqual(100);
    expect(equal!.p99).toBeLessThanOrEqual(110);
    expect(none).toEqual({ sum: 0, max: 0, p99: 0 });
  });
});
