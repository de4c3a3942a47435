import { describe, expect, it } from '@jest/globals';
import { ManualClock } from '../../../lib/memory/manual-clock.js';

describe('A manual clock', () => {
  it('stands still until it is advanced', async () => {
    const clock = new ManualClock(1_000);
    const events: string[] = [];
    clock.schedule(0, () => events.push('now'));
    await clock.settle();
    expect(events).toEqual([]);
    await clock.advance(0);
    expect(events).toEqual(['now']);
    expect(clock.read()).toEqual({ monotonic: 0, wall: 1_000 });
  });

  it('fires timers in the order of their time, at their time', async () => {
    const clock = new ManualClock();
    const events: [string, number][] = [];
    const note = (name: string) => () => events.push([name, clock.read().monotonic]);
    clock.schedule(30, note('c'));
    clock.schedule(10, note('a'));
    clock.schedule(20, note('b1'));
    clock.schedule(20, note('b2'));
    await clock.advance(29);
    expect(events).toEqual([
      ['a', 10],
      ['b1', 20],
      ['b2', 20],
    ]);
    expect(clock.pendingTimers).toBe(1);
    expect(clock.read().monotonic).toBe(29);
  });

  it('fires timers that are set meanwhile, and lets promises continue in between', async () => {
    const clock = new ManualClock();
    const times: number[] = [];
    const again = async (): Promise<void> => {
      await Promise.resolve();
      times.push(clock.read().monotonic);
      clock.schedule(10, () => void again());
    };
    void again();
    await clock.advance(35);
    expect(times).toEqual([0, 10, 20, 30]);
  });

  it('forgets a cancelled timer', async () => {
    const clock = new ManualClock();
    const timer = clock.schedule(10, () => expect(true).toBe(false)).unref();
    timer.cancel();
    timer.cancel();
    await clock.advance(100);
    expect(clock.pendingTimers).toBe(0);
  });

  it('fires late after a stall, not during it', async () => {
    const clock = new ManualClock();
    const times: number[] = [];
    clock.schedule(10, () => times.push(clock.read().monotonic));
    clock.stall(50);
    expect(times).toEqual([]);
    await clock.advance(0);
    expect(times).toEqual([50]);
  });

  it('moves only the wall when it is stepped or suspended', () => {
    const clock = new ManualClock(10_000);
    clock.stepWall(-3_000);
    clock.suspend(500);
    expect(clock.read()).toEqual({ monotonic: 0, wall: 7_500 });
  });

  it('starts in the year 2000', () => {
    expect(new Date(new ManualClock().read().wall).toISOString()).toBe('2000-01-01T00:00:00.000Z');
  });
});
