import { describe, expect, it } from '@jest/globals';
import { LockNotAcquiredError, LockServiceStoppedError, QuorumUnavailableError } from '../../../../lib/core/errors.js';
import type { NotificationListener } from '../../../../lib/core/master.interface.js';
import { Rig, type RigOptions } from '../../support/rig.js';
import {
  hangs,
  held,
  obeysAfter,
  obeysInSilence,
  only,
  says,
  tellsAfter,
  unreachable,
} from '../../support/scripted-master.js';

/** A rig whose resource `a` is held by another process that never releases it. */
async function contended({ ttl = 10_000, ...options }: RigOptions & { ttl?: number } = {}) {
  const rig = new Rig(options);
  const other = new Rig({}, rig);
  const holder = await other.lock('a', { ttl, extend: true });
  return { rig, other, holder };
}

describe('A wait', () => {
  // Protocol 3.5
  it('lasts as long as its budget by the monotonic clock, wherever the wall clock is set', async () => {
    const rig = new Rig();
    rig.scriptAll(says(held));
    const lock = rig.follow(rig.acquire('a', { wait: 5_000 }));
    await rig.clock.advance(1_000);
    rig.clock.stepWall(60_000);
    await rig.clock.advance(3_900);
    expect(lock.state).toBe('pending');
    await rig.clock.advance(200);
    expect(lock.state).toBe('rejected');
  });
});

// Protocol 5.1
describe('wait: 0', () => {
  it('is exactly one attempt', async () => {
    const { rig } = await contended();
    const lock = rig.follow(rig.acquire('a', { wait: 0 }));
    await rig.clock.advance(10_000);
    expect(lock.at).toBe(0);
    expect(rig.masters[0]!.requests('acquire')).toHaveLength(2);
  });

  it('is one full attempt during an outage, too', async () => {
    const rig = new Rig();
    rig.scriptAll(hangs);
    const lock = rig.follow(rig.acquire('a', { wait: 0 }));
    await rig.clock.advance(1_000);
    expect(lock.at).toBe(50);
    expect(rig.masters[0]!.requests('acquire')).toHaveLength(1);
  });

  it('does not queue behind waiters', async () => {
    const { rig } = await contended();
    const patient = rig.follow(rig.acquire('a', { wait: 5_000 }));
    const hasty = rig.follow(rig.acquire('a', { wait: 0 }));
    await rig.clock.settle();
    expect(hasty.reason).toBeInstanceOf(LockNotAcquiredError);
    expect(patient.state).toBe('pending');
  });
});

describe('An attempt that only the home master has refused', () => {
  it('is followed by no release, unlike an attempt on all masters', async () => {
    const rig = new Rig();
    await new Rig({}, rig).lock('a', { ttl: 30_000 });
    for (const master of rig.masters) master.asked.length = 0;
    rig.follow(rig.acquire('a', { wait: 60_000 }));
    await rig.clock.advance(20_000);
    const countsOf = (op: 'acquire' | 'release') =>
      rig.masters.map((master) => master.requests(op).length).sort((a, b) => a - b);
    const [fewest, , most] = countsOf('acquire');
    expect(most).toBeGreaterThan(fewest!);
    expect(countsOf('release')).toEqual([fewest, fewest, fewest]);
  });
});

describe('A waiting budget', () => {
  it.each([1, 60, 777, 5_000])('of %i ms ends neither early nor late', async (wait) => {
    const { rig } = await contended();
    const lock = rig.follow(rig.acquire('a', { wait }));
    await rig.clock.advance(10_000);
    expect(lock.at).toBe(wait);
    expect(lock.reason).toBeInstanceOf(LockNotAcquiredError);
    expect(lock.reason).toMatchObject({ waited: wait });
  });

  it.each([60, 777, 5_000])('of %i ms ends in time during an outage', async (wait) => {
    const rig = new Rig();
    rig.scriptAll(says(unreachable));
    const dead = rig.follow(rig.acquire('a', { wait }));
    rig.scriptAll(hangs);
    const hung = rig.follow(rig.acquire('b', { wait }));
    await rig.clock.advance(10_000);
    expect([dead.at, hung.at]).toEqual([wait, wait]);
    expect(dead.reason).toBeInstanceOf(QuorumUnavailableError);
    expect(hung.reason).toBeInstanceOf(QuorumUnavailableError);
  });

  it('that is shorter than an answer may take still allows one full attempt', async () => {
    const rig = new Rig();
    rig.scriptAll(obeysAfter(30));
    const lock = rig.follow(rig.acquire('a', { wait: 1 }));
    await rig.clock.advance(30);
    expect(lock.state).toBe('fulfilled');
  });

  it('ends in time for queued calls, too', async () => {
    const rig = new Rig();
    await rig.lock('a', { extend: true });
    rig.scriptAll(hangs);
    const lock = rig.follow(rig.acquire('a', { wait: 500 }));
    await rig.clock.advance(1_000);
    expect(lock.at).toBe(500);
    expect(lock.reason).toBeInstanceOf(LockNotAcquiredError);
  });

  it('cuts the attempt in progress at the deadline, and reports the result of the previous one', async () => {
    const { rig } = await contended();
    const lock = rig.follow(rig.acquire('a', { wait: 300 }));
    await rig.clock.advance(260);
    rig.scriptAll(hangs);
    await rig.clock.advance(1_000);
    expect(lock.at).toBe(300);
    expect(lock.reason).toBeInstanceOf(LockNotAcquiredError);
  });

  it('reports an outage that began during the wait', async () => {
    const { rig } = await contended();
    const lock = rig.follow(rig.acquire('a', { wait: 3_000 }));
    await rig.clock.advance(1_000);
    rig.scriptAll(says(unreachable));
    await rig.clock.advance(2_000);
    expect(lock.reason).toBeInstanceOf(QuorumUnavailableError);
  });

  it('reports an outage also to the calls that queue behind the one that contends', async () => {
    const rig = new Rig();
    rig.scriptAll(says(unreachable));
    const head = rig.follow(rig.acquire('a', { wait: 1_000 }));
    const queued = rig.follow(rig.acquire('a', { wait: 500 }));
    const last = rig.follow(rig.acquire('a', { wait: 1_001 }));
    await rig.clock.advance(2_000);
    expect([head.at, queued.at, last.at]).toEqual([1_000, 500, 1_001]);
    for (const { reason } of [head, queued, last]) expect(reason).toBeInstanceOf(QuorumUnavailableError);
  });

  it('survives a wall clock that is stepped back', async () => {
    const { rig } = await contended();
    const lock = rig.follow(rig.acquire('a', { wait: 1_000 }));
    rig.clock.stepWall(-3_600_000);
    await rig.clock.advance(2_000);
    expect(lock.at).toBe(1_000);
  });
});

describe('A waiter', () => {
  // Protocol 5.5
  it('tries again when the key of the holder expires', async () => {
    const rig = new Rig();
    await new Rig({}, rig).lock('a', { ttl: 1_000 });
    rig.fraction = 0.999;
    const lock = rig.follow(rig.acquire('a', { wait: 5_000 }));
    await rig.clock.advance(5_000);
    expect(lock.state).toBe('fulfilled');
    expect(lock.at).toBeGreaterThanOrEqual(1_000 - 12);
    expect(lock.at).toBeLessThanOrEqual(1_001);
  });

  it('receives the remaining time from the home master', async () => {
    const { rig } = await contended();
    for (const master of rig.masters) master.asked.length = 0;
    const lock = rig.follow(rig.acquire('a', { wait: 100 }));
    await rig.clock.advance(200);
    expect(lock.state).toBe('rejected');
    expect(lock.reason).toHaveProperty('retryAfter', expect.any(Number));
  });

  it('asks all masters once, and then only the home master, now and then', async () => {
    const { rig } = await contended();
    for (const master of rig.masters) master.asked.length = 0;
    rig.follow(rig.acquire('a', { wait: 200 }));
    await rig.clock.advance(200);
    const asked = rig.masters.map((master) => master.requests('acquire').length);
    expect([...asked].sort()).toEqual([1, 1, 2]);
  });

  /** Lets the home master of `a` wake this process once, so that the process knows that notifications arrive. */
  async function callOnce({ rig, other, holder }: Awaited<ReturnType<typeof contended>>, ttl = 30_000): Promise<void> {
    const lock = rig.acquire('a', { wait: 1_000 });
    await rig.clock.settle();
    await holder.release();
    await (await lock).release();
    await other.lock('a', { ttl, extend: true });
  }

  /** Milliseconds between consecutive requests to the first master, over a long wait. */
  async function pauses(rig: Rig): Promise<number[]> {
    for (const master of rig.masters) master.asked.length = 0;
    rig.follow(rig.acquire('a', { wait: 60_000 }));
    await rig.clock.advance(60_000);
    const times = rig.masters[0]!.times('acquire').filter((at, i, all) => at !== all[i - 1]);
    return times.slice(1).map((at, i) => at - times[i]!);
  }

  // Protocol 5.5
  it.each([
    [0, [250, 500, 1_000, 4_000 / 3]],
    [0.999, [749.5, 1_499, 2_998, 3_997.3]],
  ])('polls at growing intervals, long before its place could expire (chance: %d)', async (chance, grown) => {
    const stage = await contended({ masters: 1 });
    const { rig } = stage;
    await callOnce(stage);
    rig.fraction = chance;
    const found = await pauses(rig);
    found.slice(0, 4).forEach((pause, i) => expect(pause).toBeCloseTo(grown[i]!, 0));
    for (const pause of found.slice(4)) expect(pause).toBeCloseTo(grown[3]!, 0);
    expect(found.length).toBeGreaterThan(14);
  });

  // Protocol 5.5
  it('asks only the home master when it polls, and all masters now and then', async () => {
    const stage = await contended({ masters: 5 });
    const { rig } = stage;
    await callOnce(stage);
    await pauses(rig);
    const asked = rig.masters.map((master) => master.requests('acquire').length).sort((a, b) => a - b);
    // Once at the beginning, and at every eighth of some 24 polls.
    expect(asked.slice(0, 4)).toEqual([4, 4, 4, 4]);
    expect(asked[4]).toBeGreaterThan(24);
  });

  it.each(['has never been called', 'may have missed a call'])(
    'that %s polls often, and on all masters',
    async (why) => {
      const stage = await contended({ masters: 3, ttl: 30_000 });
      const { rig } = stage;
      const notifications: NotificationListener[] = [];
      for (const master of rig.masters) {
        const listen = master.listen.bind(master);
        master.listen = (waiter, notify) => {
          if (notify) notifications.push(notify);
          listen(waiter, notify);
        };
      }
      if (why === 'may have missed a call') {
        await callOnce(stage);
        for (const notify of notifications.splice(0)) notify(undefined);
      }
      rig.fraction = 0.999;
      const found = await pauses(rig);
      expect(Math.max(...found)).toBeLessThanOrEqual(750);
      for (const master of rig.masters) expect(master.requests('acquire').length).toBeGreaterThan(70);
    },
  );

  // Protocol 5.7
  it('leaves no place in a queue behind, whatever the outcome', async () => {
    const { rig, holder } = await contended();
    const controller = new AbortController();
    const queued = (): number[] => rig.masters.map(({ memory }) => memory.queued);
    rig.follow(rig.acquire('a', { wait: 100 }));
    await rig.clock.advance(50);
    expect(queued().filter((count) => count > 0)).toHaveLength(1);
    await rig.clock.advance(50);
    expect(queued()).toEqual([0, 0, 0]);
    rig.follow(rig.acquire('a', { wait: 5_000, signal: controller.signal }));
    await rig.clock.settle();
    controller.abort();
    await rig.clock.settle();
    expect(queued()).toEqual([0, 0, 0]);
    const last = rig.follow(rig.acquire('a', { wait: 5_000 }));
    await rig.clock.settle();
    await holder.release();
    await rig.clock.settle();
    expect(last.state).toBe('fulfilled');
    expect(queued()).toEqual([0, 0, 0]);
  });

  it('releases a late grant if no master can be asked first', async () => {
    const rig = new Rig();
    for (const master of rig.masters) master.known = { quarantine: { reason: 'it was restarted', remaining: 60_000 } };
    rig.script(2, only('acquire', says(held)));
    // This master grants, but its answer arrives after the others have decided.
    rig.masters[2]!.behaviour = only('acquire', tellsAfter(10));
    const lock = rig.follow(rig.acquire('a', { ttl: 10_000, wait: 100 }));
    await rig.clock.advance(200);
    expect(lock.state).toBe('rejected');
    expect(rig.masters[2]!.requests('acquire').length).toBeGreaterThan(1);
    expect(rig.keys).toEqual([0, 0, 0]);
  });

  it('causes no hot loop even if every random fraction is zero', async () => {
    const { rig } = await contended();
    rig.fraction = 0;
    for (const master of rig.masters) master.asked.length = 0;
    rig.follow(rig.acquire('a', { wait: 100 }));
    await rig.clock.advance(100);
    expect(rig.masters[0]!.requests('acquire').length).toBeLessThanOrEqual(102);
  });
});

describe('An abort signal', () => {
  const reason = new Error('the client has gone');

  it('that has already aborted stops everything', async () => {
    const rig = new Rig();
    await expect(rig.acquire('a', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(rig.masters[0]!.asked).toEqual([]);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  // Protocol 5.1
  it('ends waiting at once with its reason', async () => {
    const { rig, holder } = await contended();
    const aborter = new AbortController();
    const lock = rig.follow(rig.acquire('a', { signal: aborter.signal }));
    await rig.clock.advance(1_234);
    aborter.abort(reason);
    await rig.clock.settle();
    expect([lock.reason, lock.at]).toEqual([reason, 1_234]);
    await holder.release();
    await rig.clock.advance(100);
    expect(rig.keys).toEqual([0, 0, 0]);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('ends an attempt in progress at once, and leaves nothing on any master', async () => {
    const rig = new Rig();
    rig.scriptAll(obeysAfter(40));
    const aborter = new AbortController();
    const lock = rig.follow(rig.acquire('a', { signal: aborter.signal }));
    await rig.clock.advance(10);
    aborter.abort(reason);
    await rig.clock.settle();
    expect([lock.reason, lock.at]).toEqual([reason, 10]);
    await rig.clock.advance(1_000);
    expect(rig.keys).toEqual([0, 0, 0]);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('ends an attempt that has just been granted, and leaves nothing on any master', async () => {
    const rig = new Rig();
    const aborter = new AbortController();
    const lock = rig.follow(rig.acquire('a', { signal: aborter.signal }));
    await Promise.resolve();
    await Promise.resolve();
    aborter.abort(reason);
    await rig.clock.settle();
    if (lock.state === 'fulfilled') await lock.value!.release();
    expect(rig.keys).toEqual([0, 0, 0]);
  });

  it('ends the wait in a queue at once', async () => {
    const rig = new Rig();
    await rig.lock('a');
    const aborter = new AbortController();
    const lock = rig.follow(rig.acquire('a', { signal: aborter.signal }));
    await rig.clock.advance(10);
    aborter.abort(reason);
    await rig.clock.settle();
    expect([lock.reason, lock.at]).toEqual([reason, 10]);
  });

  it('has no effect on a lock that has been acquired, and keeps no listener', async () => {
    const rig = new Rig();
    const aborter = new AbortController();
    let listeners = 0;
    const { signal } = aborter;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners++;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners--;
      remove(...args);
    };
    const lock = await rig.lock('a', { signal });
    const refused = rig.follow(rig.acquire('a', { signal, wait: 10 }));
    expect(listeners).toBe(1);
    await rig.clock.advance(10);
    expect(refused.state).toBe('rejected');
    expect(listeners).toBe(0);
    aborter.abort(reason);
    expect(lock.isHeld).toBe(true);
  });
});

describe('stop', () => {
  it('ends waiting, attempts in progress and new acquisitions, and keeps locks that are held', async () => {
    const { rig } = await contended();
    const mine = await rig.lock('b');
    rig.masters.forEach((master) => (master.behaviour = only('acquire', obeysInSilence)));
    const asking = rig.follow(rig.acquire('c'));
    const contending = rig.follow(rig.acquire('a'));
    const queued = rig.follow(rig.acquire('a'));
    await rig.clock.advance(10);
    rig.redlock.stop();
    await rig.clock.settle();
    const late = rig.follow(rig.acquire('d'));
    await rig.clock.settle();
    for (const { reason, at } of [asking, contending, queued, late]) {
      expect(reason).toBeInstanceOf(LockServiceStoppedError);
      expect(at).toBe(10);
    }
    expect(mine.isHeld).toBe(true);
    expect(rig.keys).toEqual([2, 2, 2]);
  });

  it('is followed by a drain that waits for the locks that are held', async () => {
    const rig = new Rig();
    const lock = await rig.lock('a');
    rig.redlock.stop();
    const drained = rig.follow(rig.redlock.drain(5_000));
    await rig.clock.advance(1_000);
    expect(drained.state).toBe('pending');
    await lock.release();
    await rig.clock.settle();
    expect(drained.at).toBe(1_000);
    expect(rig.losses).toEqual([]);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('is followed by a drain that takes away the remaining locks when its time is over', async () => {
    const rig = new Rig();
    const lock = await rig.lock('a');
    rig.redlock.stop();
    const drained = rig.follow(rig.redlock.drain(5_000));
    await rig.clock.advance(5_000);
    expect(drained.at).toBe(5_000);
    expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST', cause: 'shutdown' });
    expect(rig.keys).toEqual([0, 0, 0]);
  });

  it('leaves nothing on the masters when connections are closed right after', async () => {
    const rig = new Rig();
    const lock = rig.follow(rig.acquire('a'));
    rig.redlock.stop();
    const closed = rig.follow(rig.redlock.drain(5_000).then(() => rig.redlock.close()));
    await rig.clock.settle();
    expect(lock.state).toBe('rejected');
    expect(closed.at).toBe(0);
    const last = rig.masters.map(({ asked }) => asked.at(-1)?.request.op);
    expect(last).toEqual(['release', 'release', 'release']);
    expect(rig.masters.map(({ closed }) => closed)).toEqual([true, true, true]);
    expect(rig.keys).toEqual([0, 0, 0]);
  });

  it('closes connections only after releases have been answered, or could have been', async () => {
    const rig = new Rig();
    const lock = await rig.lock('a');
    rig.scriptAll(hangs);
    void lock.release();
    const closed = rig.follow(rig.redlock.close());
    await rig.clock.advance(1_000);
    expect(closed.at).toBe(50);
  });
});
