import { describe, expect, it } from '@jest/globals';
import { Rig } from '../support/rig.js';

describe('Draining a process', () => {
  it('ends for every caller when the last lock is released', async () => {
    const rig = new Rig();
    const lock = await rig.lock('a');
    const drains = [1_000, 2_000, 3_000].map((timeout) => rig.follow(rig.redlock.drain(timeout)));
    await rig.clock.advance(500);
    await lock.release();
    await rig.clock.settle();
    expect(drains.map(({ at }) => at)).toEqual([500, 500, 500]);
    expect(rig.losses).toEqual([]);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('ends for every caller when the time of one of them is over', async () => {
    const rig = new Rig();
    const lock = await rig.lock('a');
    const drains = [3_000, 1_000, 2_000].map((timeout) => rig.follow(rig.redlock.drain(timeout)));
    await rig.clock.advance(5_000);
    // It takes the lock away, which leaves the others nothing to wait for.
    expect(drains.map(({ at }) => at)).toEqual([1_000, 1_000, 1_000]);
    expect(lock.loss).toMatchObject({ cause: 'shutdown' });
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('ends at once when the process is closed meanwhile', async () => {
    const rig = new Rig();
    await rig.lock('a');
    const waiting = rig.follow(rig.acquire('a'));
    const drains = [1_000, 2_000].map((timeout) => rig.follow(rig.redlock.drain(timeout)));
    const closes = [rig.redlock.close(), rig.redlock.close()].map((close) => rig.follow(close));
    await rig.clock.settle();
    expect(waiting.state).toBe('rejected');
    expect([...drains, ...closes].map(({ at }) => at)).toEqual([0, 0, 0, 0]);
    expect(rig.keys).toEqual([0, 0, 0]);
    expect(rig.clock.pendingTimers).toBe(0);
  });
});
