import { describe, expect, it } from '@jest/globals';
import { MachineClock } from './machine-clock.js';
import { Scheduler } from './scheduler.js';

function started(): { readonly clock: MachineClock; readonly pass: (milliseconds: number) => void } {
  const scheduler = new Scheduler();
  return { clock: new MachineClock(scheduler, 1, 0), pass: (milliseconds) => (scheduler.now += milliseconds) };
}

describe('MachineClock', () => {
  it('stops both clocks while its machine does not run', () => {
    const { clock, pass } = started();
    const before = clock.read();
    clock.stop();
    pass(5_000);
    expect(clock.read()).toEqual({ ...before, takenAt: 5_000 });
    clock.start();
    pass(10);
    expect(clock.read().monotonic - before.monotonic).toBeCloseTo(10);
    expect(clock.error).toBeCloseTo(-5_000);
  });

  it('stops only the monotonic clock while its machine is suspended', () => {
    const { clock, pass } = started();
    const before = clock.read();
    clock.suspend();
    pass(5_000);
    clock.resume();
    const { monotonic, wall } = clock.read();
    expect([monotonic - before.monotonic, wall - before.wall]).toEqual([0, 5_000]);
  });

  it('runs slow while it is slewed, and remembers the slowest rate', () => {
    const { clock, pass } = started();
    const before = clock.read();
    clock.slew(0.9);
    pass(1_000);
    clock.slew(1 / 0.9);
    pass(1_000);
    expect(clock.read().monotonic - before.monotonic).toBeCloseTo(1_900);
    expect(clock.slowest).toBe(0.9);
  });
});
