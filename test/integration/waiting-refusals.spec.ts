import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type CountingContender, Crowd } from '../support/crowd.js';
import { eventually } from '../support/eventually.js';

const WAIT = { wait: '60s' } as const;
const QUEUE = 'lock:\0queue:k';

describe('Waiting at masters that refuse commands', () => {
  let crowd: Crowd;
  let holder: CountingContender;
  let waiting: CountingContender;
  beforeEach(async () => {
    crowd = await Crowd.of(2, 3);
    [holder, waiting] = crowd.contenders as [CountingContender, CountingContender];
  });
  afterEach(async () => {
    await crowd[Symbol.asyncDispose]();
  });

  /** Two contenders take turns, whatever the state of the masters. */
  async function expectTurns(requests = 100): Promise<void> {
    for (let i = 0; i < 2; i++) {
      crowd.reset();
      const lock = await holder.acquire(['k', 'z'], '5s', WAIT);
      const turn = waiting.acquire('k', '5s', WAIT);
      await eventually(() => waiting.acquires >= 4);
      await lock.release();
      const mine = await turn;
      expect(mine.isHeld).toBe(true);
      await mine.release();
      expect(crowd.requests).toBeLessThan(requests);
    }
    await eventually(async () => (await crowd.call('EXISTS', 'lock:k', 'lock:z')).every((count) => count === 0), 4_000);
  }

  /** Changes the permissions of the default user, for new connections. */
  async function restrict(...rules: string[]): Promise<void> {
    await crowd.call('ACL', 'SETUSER', 'default', ...rules);
  }

  it('works without permission to subscribe or to publish', async () => {
    await restrict('resetchannels');
    await expectTurns();
    expect(await crowd.queued('k')).toEqual([0, 0, 0]);
  });

  it('wakes the next waiter without permission to count subscribers', async () => {
    await restrict('-pubsub');
    const lock = await crowd.lockOnAll(holder, 'k', '20s');
    const turn = waiting.acquire('k', '20s', WAIT);
    await crowd.untilQueued('k', 1);
    crowd.reset();
    await lock.release();
    await (await turn).release();
    expect(waiting.calls).toBe(1);
  });

  it('works without permission to use queues', async () => {
    await restrict('-zadd', '-zscore', '-zrem');
    await expectTurns();
  });

  it('works when the key of a queue has another type', async () => {
    await crowd.call('SET', QUEUE, 'something else');
    await expectTurns();
  });

  it.each(['READONLY', 'OOM', 'NOPERM'])('works when the home master refuses to lock: %s', async (why) => {
    const lock = await crowd.lockOnAll(holder, 'k', '20s');
    const turn = waiting.acquire('k', '20s', WAIT);
    await crowd.untilQueued('k', 1);
    const home = (await crowd.queued('k')).indexOf(1);
    if (why === 'READONLY') await crowd.callOn(home, 'REPLICAOF', '127.0.0.1', '1');
    if (why === 'OOM') await crowd.callOn(home, 'CONFIG', 'SET', 'maxmemory', '1');
    if (why === 'NOPERM') await crowd.callOn(home, 'ACL', 'SETUSER', 'default', '-set', '-evalsha', '-eval');
    await crowd.callOn(home, 'DEL', 'lock:k').catch(() => undefined);
    crowd.reset();
    await sleep(1_000);
    // The waiter polls at bounded intervals instead of in a hot loop.
    expect(waiting.requests).toBeLessThan(100);
    await lock.release();
    await (await turn).release();
  });
});
