import { describe, expect, it } from '@jest/globals';
import { Condition } from '../../../lib/core/condition.js';
import { Followed } from '../support/rig.js';
import { TestClock } from '../support/test-clock.js';

function waitable() {
  const clock = new TestClock();
  const state = { holds: false };
  const condition = new Condition(() => state.holds);
  const follow = (promise: Promise<void>): Followed<void> => new Followed(promise, clock);
  return { clock, state, condition, follow };
}

describe('Condition', () => {
  it('is awaited by several callers, all of which go on when it holds', async () => {
    const { clock, state, condition, follow } = waitable();
    const waits = [condition.met(), condition.metWithin(100, clock), condition.met()].map(follow);
    await clock.advance(10);
    condition.check();
    await clock.settle();
    expect(waits.map((wait) => wait.state)).toEqual(['pending', 'pending', 'pending']);
    state.holds = true;
    condition.check();
    await clock.settle();
    expect(waits.map(({ at }) => at)).toEqual([10, 10, 10]);
    expect(clock.pendingTimers).toBe(0);
  });

  it('keeps no caller waiting if it holds already', async () => {
    const { clock, state, condition, follow } = waitable();
    state.holds = true;
    const waits = [condition.met(), condition.metWithin(100, clock)].map(follow);
    await clock.settle();
    expect(waits.map(({ at }) => at)).toEqual([0, 0]);
    expect(clock.pendingTimers).toBe(0);
  });

  it('is awaited no longer than each caller wants', async () => {
    const { clock, condition, follow } = waitable();
    const waits = [condition.metWithin(200, clock), condition.metWithin(100, clock), condition.met()].map(follow);
    await clock.advance(1_000);
    expect(waits.map(({ at }) => at)).toEqual([200, 100, undefined]);
  });

  it('is awaited anew after it held', async () => {
    const { clock, state, condition, follow } = waitable();
    state.holds = true;
    condition.check();
    state.holds = false;
    const wait = follow(condition.met());
    condition.check();
    await clock.settle();
    expect(wait.state).toBe('pending');
  });
});
