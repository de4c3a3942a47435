import { beforeEach, describe, expect, it } from '@jest/globals';
import { ManualClock } from '../../../lib/memory/manual-clock.js';
import { ClockGuard } from '../../../lib/redis/clock-guard.js';

const WINDOW = 30_000;
const ALLOWANCE = 102;
const ROUND_TRIP = 4;

describe('The guard of a server clock', () => {
  let clock: ManualClock;
  let guard: ClockGuard;
  /** How far the server's clock is ahead of ours. */
  let offset: number;

  beforeEach(() => {
    clock = new ManualClock();
    guard = new ClockGuard(WINDOW);
    offset = 5_000_000;
  });

  /** Asks the server, which reads its clock half-way. */
  function look(allowance = ALLOWANCE, roundTrip = ROUND_TRIP): number {
    const sent = clock.read();
    clock.stall(roundTrip / 2);
    const time = Math.floor(clock.read().wall + offset);
    clock.stall(roundTrip / 2);
    return guard.jump(sent, clock.read(), time, allowance);
  }

  it('knows nothing at first, whatever the server says', () => {
    expect(look()).toBe(0);
  });

  it('does not mind a clock that is wrong but steady', () => {
    for (let i = 0; i < 100; i++) {
      expect(look()).toBe(0);
      clock.stall(997);
    }
  });

  it('notices a jump forward, once', () => {
    look();
    clock.stall(1_000);
    offset += 60_000;
    const jump = look();
    expect(jump).toBeGreaterThan(59_900);
    expect(jump).toBeLessThanOrEqual(60_000);
    expect(look()).toBe(0);
  });

  it('lets a jump within the allowance pass', () => {
    look();
    offset += ALLOWANCE - ROUND_TRIP;
    expect(look()).toBe(0);
  });

  it('notices many small jumps', () => {
    const jumps = [look()];
    for (let i = 0; i < 10; i++) {
      offset += 20;
      clock.stall(1_000);
      jumps.push(look());
    }
    expect(jumps.filter((jump) => jump > 0)).toHaveLength(1);
  });

  it('does not take slewing for a jump, for however long it lasts', () => {
    for (let hour = 0; hour < 24; hour++) {
      for (let i = 0; i < 360; i++) {
        expect(look()).toBe(0);
        clock.stall(10_000);
        offset += 10_000 * 490e-6;
      }
    }
  });

  it('notices a jump after a day as well as after a second', () => {
    for (let i = 0; i < 24 * 360; i++) {
      look();
      clock.stall(10_000);
    }
    offset += 1_000;
    expect(look()).toBeGreaterThan(800);
  });

  it('does not mind a jump back', () => {
    look();
    offset -= 60_000;
    clock.stall(1_000);
    expect(look()).toBe(0);
  });

  it.each([1_000, 100_000])('notices a jump forward after one back, %d ms after the first look', (passed) => {
    look();
    clock.stall(passed);
    offset -= 10_000;
    expect(look()).toBe(0);
    clock.stall(1_000);
    offset += 10_000;
    expect(look()).toBeGreaterThan(9_800);
  });

  it('does not mind that this machine was suspended', () => {
    look();
    clock.suspend(3_600_000);
    expect(look()).toBe(0);
    offset += 60_000;
    expect(look()).toBeGreaterThan(0);
  });

  it('does not mind that the clock of this machine is stepped, and notices a jump after that', () => {
    for (const step of [60_000, -60_000, 60_000]) {
      look();
      clock.stepWall(step);
      offset -= step;
      expect(look()).toBe(0);
    }
    offset += 60_000;
    expect(look()).toBeGreaterThan(0);
  });

  it('does not take a slow answer for a jump', () => {
    look();
    expect(look(ALLOWANCE, 10_000)).toBe(0);
    expect(look()).toBe(0);
  });
});
