import { describe, expect, it } from '@jest/globals';
import { LockNotAcquiredError } from '../../../lib/waiting/lock-not-acquired.error.js';
import { LockServiceStoppedError } from '../../../lib/redlock/errors.js';
import { Rig } from '../support/rig.js';

/** Two processes hold `a` and `b`, and a third one waits for both. */
async function waiting(options: { wait?: number; signal?: AbortSignal } = {}) {
  const rig = new Rig();
  const [left, right, pair] = [rig.peer(), rig.peer(), rig.peer()];
  const leftLock = await left.lock('a', { ttl: 30_000 });
  const rightLock = await right.lock('b', { ttl: 30_000 });
  const lock = await rig.outcomeAfter(100, pair.acquire(['b', 'a'], { ttl: 30_000, wait: 60_000, ...options }));
  return { rig, left, right, pair, lock, leftLock, rightLock };
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

  it('gets them as soon as a holder of all releases them', async () => {
    const rig = new Rig();
    const held = await rig.peer().lock(['a', 'b']);
    const lock = await rig.outcomeAfter(100, rig.acquire(['b', 'a']));
    await rig.settle(held.release());
    expect([lock.state, rig.keys]).toEqual(['fulfilled', [2, 2, 2]]);
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

  it('waits for as long as its budget if they are never free together', async () => {
    const { rig, lock } = await waiting({ wait: 12_000 });
    await rig.clock.advance(12_000);
    expect(lock).toMatchObject({ state: 'rejected', reason: expect.any(LockNotAcquiredError), at: 12_000 });
    expect(rig.queued).toEqual([0, 0, 0]);
  });

  const enough = new Error('enough');

  it.each<[string, (pair: Rig, stop: AbortController) => void, unknown]>([
    ['its signal aborts', (_, stop) => stop.abort(enough), enough],
    ['it is stopped', ({ redlock }) => redlock.stop(), expect.any(LockServiceStoppedError)],
  ])('leaves all queues when %s', async (_, end, reason) => {
    const stop = new AbortController();
    const { rig, pair, lock, leftLock, rightLock } = await waiting({ signal: stop.signal });
    end(pair, stop);
    await rig.clock.settle();
    expect(lock).toMatchObject({ state: 'rejected', reason });
    await rig.settle(Promise.all([leftLock.release(), rightLock.release()]));
    expect([rig.keys, rig.queued]).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ]);
  });
});
