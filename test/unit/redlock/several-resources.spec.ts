import { describe, expect, it } from '@jest/globals';
import { Rig } from '../support/rig.js';

/** Two processes hold `a` and `b`, and a third one waits for both. */
async function waiting() {
  const rig = new Rig();
  const [left, right, pair] = [rig.peer(), rig.peer(), rig.peer()];
  const leftLock = await left.lock('a', { ttl: 30_000 });
  const rightLock = await right.lock('b', { ttl: 30_000 });
  const lock = await rig.outcomeAfter(100, pair.acquire(['b', 'a'], { ttl: 30_000, wait: 60_000 }));
  return { rig, left, pair, lock, leftLock, rightLock };
}

describe('A waiter for several resources', () => {
  // Protocol 4.9
  it('keeps none of them while another one is held', async () => {
    const { rig, left, lock, leftLock, rightLock } = await waiting();
    await rig.settle(leftLock.release());
    await rig.clock.advance(5_000);
    expect([lock.state, rig.keys]).toEqual(['pending', [1, 1, 1]]);
    const again = await left.lock('a', { wait: 0 });
    await rig.settle(rightLock.release());
    await rig.clock.advance(5_000);
    expect([lock.state, rig.keys]).toEqual(['pending', [1, 1, 1]]);
    await rig.settle(again.release());
    await rig.clock.advance(5_000);
    expect([lock.state, lock.value!.resources, rig.keys]).toEqual(['fulfilled', ['b', 'a'], [2, 2, 2]]);
    await lock.value!.release();
    expect([rig.keys, rig.queued]).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ]);
  });

  // Protocol 4.9
  it('asks at once when it is notified, and at a random moment if the notification before was in vain', async () => {
    const { rig, left, pair, leftLock } = await waiting();
    const asked = (): number => rig.masters.reduce((sum, master) => sum + master.times('acquire').length, 0);
    const delays: number[] = [];
    let lock = leftLock;
    for (const fraction of [0.5, 0.5, 0.9]) {
      pair.fraction = fraction;
      const before = asked();
      await rig.settle(lock.release());
      let delay = 0;
      for (; asked() === before && delay < 100; delay++) await rig.clock.advance(1);
      delays.push(delay);
      lock = await left.lock('a', { ttl: 30_000 });
      // It polls, and is in the queue again.
      await rig.clock.advance(5_000);
    }
    expect(delays).toEqual([0, 10, 18]);
  });
});
