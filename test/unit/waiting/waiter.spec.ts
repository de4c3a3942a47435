import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { LockNotAcquiredError } from '../../../lib/waiting/lock-not-acquired.error.js';
import { LockServiceStoppedError, QuorumUnavailableError } from '../../../lib/redlock/errors.js';
import type { NotificationListener } from '../../../lib/masters/master.interface.js';
import { Rig } from '../support/rig.js';
import {
  hangs,
  held,
  obeysAfter,
  obeysInSilence,
  only,
  says,
  tellsAfter,
  unreachable,
} from '../support/scripted-master.js';

let rig: Rig;

beforeEach(() => void (rig = new Rig()));

const reason = new Error('the client has gone');

/** The outcome of a call whose signal aborts after so many milliseconds. */
async function abortedAfter(milliseconds: number, options: { wait?: number } = {}) {
  const aborter = new AbortController();
  const lock = await rig.outcomeAfter(milliseconds, rig.acquire('a', { ...options, signal: aborter.signal }));
  aborter.abort(reason);
  await rig.clock.settle();
  return lock;
}

/** Another process holds resource `a`, and never releases it. */
async function contended({ ttl = 10_000, masters = 3 } = {}) {
  rig = new Rig({ masters });
  const other = rig.peer();
  return { other, holder: await other.lock('a', { ttl, extend: true }) };
}

// Protocol 5.1
describe('wait: 0', () => {
  it('is exactly one attempt, also during an outage', async () => {
    await contended();
    const lock = await rig.outcomeAfter(10_000, rig.acquire('a', { wait: 0 }));
    expect([lock.at, rig.masters[0]!.requests('acquire').length]).toEqual([0, 2]);
    rig.scriptAll(hangs);
    const down = await rig.outcomeAfter(1_000, rig.acquire('b', { wait: 0 }));
    expect([down.at, rig.masters[0]!.requests('acquire').length]).toEqual([10_050, 3]);
  });
});

it('An attempt that only the home master has refused is followed by no release, unlike an attempt on all masters', async () => {
  await rig.peer().lock('a', { ttl: 30_000 });
  rig.forget();
  await rig.outcomeAfter(20_000, rig.acquire('a', { wait: 60_000 }));
  const [fewest, , most] = rig.counts('acquire').sort((a, b) => a - b);
  expect(most).toBeGreaterThan(fewest!);
  expect(rig.counts('release')).toEqual([fewest, fewest, fewest]);
});

describe('A waiting budget', () => {
  it.each([1, 60, 777, 5_000])('of %i ms ends neither early nor late', async (wait) => {
    await contended();
    const lock = await rig.outcomeAfter(10_000, rig.acquire('a', { wait }));
    expect(lock.reason).toBeInstanceOf(LockNotAcquiredError);
    expect(lock).toMatchObject({ at: wait, reason: { waited: wait } });
  });

  it.each([60, 777, 5_000])('of %i ms ends in time during an outage', async (wait) => {
    rig.scriptAll(says(unreachable));
    const dead = rig.follow(rig.acquire('a', { wait }));
    rig.scriptAll(hangs);
    const hung = await rig.outcomeAfter(10_000, rig.acquire('b', { wait }));
    const outage = { at: wait, reason: expect.any(QuorumUnavailableError) };
    expect([dead, hung]).toMatchObject([outage, outage]);
  });

  it('that is shorter than an answer may take still allows one full attempt', async () => {
    rig.scriptAll(obeysAfter(30));
    expect(await rig.outcomeAfter(30, rig.acquire('a', { wait: 1 }))).toMatchObject({ state: 'fulfilled' });
  });

  it('cuts the attempt in progress at the deadline, and reports the result of the previous one', async () => {
    await contended();
    const lock = await rig.outcomeAfter(260, rig.acquire('a', { wait: 300 }));
    rig.scriptAll(hangs);
    await rig.clock.advance(1_000);
    expect(lock).toMatchObject({ at: 300, reason: expect.any(LockNotAcquiredError) });
  });

  it('reports an outage also to the calls that queue behind the one that contends', async () => {
    rig.scriptAll(says(unreachable));
    const head = rig.follow(rig.acquire('a', { wait: 1_000 }));
    const queued = rig.follow(rig.acquire('a', { wait: 500 }));
    const last = await rig.outcomeAfter(2_000, rig.acquire('a', { wait: 1_001 }));
    expect([head.at, queued.at, last.at]).toEqual([1_000, 500, 1_001]);
    for (const { reason } of [head, queued, last]) expect(reason).toBeInstanceOf(QuorumUnavailableError);
  });

  // Protocol 3.4
  it.each([-3_600_000, 60_000])(
    'ends in time by the monotonic clock if the wall clock is set by %i ms',
    async (step) => {
      rig.scriptAll(says(held));
      const lock = await rig.outcomeAfter(500, rig.acquire('a', { wait: 1_000 }));
      rig.clock.stepWall(step);
      await rig.clock.advance(1_500);
      expect(lock.at).toBe(1_000);
    },
  );
});

describe('A waiter', () => {
  /** Lets the home master of `a` wake this process once, so that the process knows that notifications arrive. */
  async function callOnce({ other, holder }: Awaited<ReturnType<typeof contended>>, ttl = 30_000): Promise<void> {
    const lock = await rig.outcomeOf(rig.acquire('a', { wait: 1_000 }));
    await rig.settle(holder.release());
    await lock.value!.release();
    await other.lock('a', { ttl, extend: true });
  }

  /** Milliseconds between consecutive requests to the first master, over a long wait. */
  async function pauses(): Promise<number[]> {
    rig.forget();
    await rig.outcomeAfter(60_000, rig.acquire('a', { wait: 60_000 }));
    const times = rig.masters[0]!.times('acquire').filter((at, i, all) => at !== all[i - 1]);
    return times.slice(1).map((at, i) => at - times[i]!);
  }

  // Protocol 5.5
  it.each([
    [0, [250, 500, 1_000, 4_000 / 3]],
    [0.999, [749.5, 1_499, 2_998, 3_997.3]],
  ])('polls at growing intervals, long before its place could expire (chance: %d)', async (chance, grown) => {
    const stage = await contended({ masters: 1 });
    await callOnce(stage);
    rig.fraction = chance;
    const found = await pauses();
    found.slice(0, 4).forEach((pause, i) => expect(pause).toBeCloseTo(grown[i]!, 0));
    for (const pause of found.slice(4)) expect(pause).toBeCloseTo(grown[3]!, 0);
    expect(found.length).toBeGreaterThan(14);
  });

  // Protocol 5.5
  it('asks only the home master when it polls, and all masters now and then', async () => {
    const stage = await contended({ masters: 5 });
    await callOnce(stage);
    await pauses();
    const asked = rig.counts('acquire').sort((a, b) => a - b);
    // Once at the beginning, and at every eighth of some 24 polls.
    expect(asked.slice(0, 4)).toEqual([4, 4, 4, 4]);
    expect(asked[4]).toBeGreaterThan(24);
  });

  it.each(['has never been called', 'may have missed a call'])(
    'that %s polls often, and on all masters',
    async (why) => {
      const stage = await contended({ ttl: 30_000 });
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
      const found = await pauses();
      expect(Math.max(...found)).toBeLessThanOrEqual(750);
      for (const master of rig.masters) expect(master.requests('acquire').length).toBeGreaterThan(70);
    },
  );

  // Protocol 5.7
  it('leaves no place in a queue behind, whatever the outcome', async () => {
    const { holder } = await contended();
    await rig.outcomeAfter(50, rig.acquire('a', { wait: 100 }));
    expect(rig.queued.filter((count) => count > 0)).toHaveLength(1);
    await rig.clock.advance(50);
    expect(rig.queued).toEqual([0, 0, 0]);
    await abortedAfter(0, { wait: 5_000 });
    expect(rig.queued).toEqual([0, 0, 0]);
    const last = await rig.outcomeOf(rig.acquire('a', { wait: 5_000 }));
    await rig.settle(holder.release());
    expect([last.state, rig.queued]).toEqual(['fulfilled', [0, 0, 0]]);
  });

  it('releases a late grant if no master can be asked first', async () => {
    for (const master of rig.masters)
      master.known = { quarantine: { reason: 'waits 60.0 s after a restart', remaining: 60_000 } };
    rig.script(2, only('acquire', says(held)));
    // This master grants, but its answer arrives after the others have decided.
    rig.masters[2]!.behaviour = only('acquire', tellsAfter(10));
    const lock = await rig.outcomeAfter(200, rig.acquire('a', { ttl: 10_000, wait: 100 }));
    expect(lock.state).toBe('rejected');
    expect(rig.masters[2]!.requests('acquire').length).toBeGreaterThan(1);
    expect(rig.keys).toEqual([0, 0, 0]);
  });
});

describe('An abort signal', () => {
  // Protocol 5.1
  it('ends waiting at once with its reason', async () => {
    const { holder } = await contended();
    expect(await abortedAfter(1_234)).toMatchObject({ reason, at: 1_234 });
    const first = rig.follow(rig.acquire('a', { wait: 100 }));
    expect(await abortedAfter(10)).toMatchObject({ reason, at: 1_244 });
    expect(first.state).toBe('pending');
    await rig.clock.advance(100);
    await holder.release();
    await rig.clock.advance(100);
    expect([rig.keys, rig.clock.pendingTimers]).toEqual([[0, 0, 0], 0]);
  });

  it('ends an attempt in progress at once, and leaves nothing on any master', async () => {
    rig.scriptAll(obeysAfter(40));
    expect(await abortedAfter(10)).toMatchObject({ reason, at: 10 });
    await rig.clock.advance(1_000);
    expect([rig.keys, rig.clock.pendingTimers]).toEqual([[0, 0, 0], 0]);
  });

  it('ends an attempt that has just been granted, and leaves nothing on any master', async () => {
    const aborter = new AbortController();
    const lock = rig.follow(rig.acquire('a', { signal: aborter.signal }));
    await Promise.resolve();
    await Promise.resolve();
    aborter.abort(reason);
    await rig.clock.settle();
    if (lock.state === 'fulfilled') await lock.value!.release();
    expect(rig.keys).toEqual([0, 0, 0]);
  });

  it('has no effect on a lock that has been acquired, and keeps no listener', async () => {
    const aborter = new AbortController();
    const { signal } = aborter;
    const added = jest.spyOn(signal, 'addEventListener');
    const removed = jest.spyOn(signal, 'removeEventListener');
    const listeners = (): number => added.mock.calls.length - removed.mock.calls.length;
    const lock = await rig.lock('a', { signal });
    const refused = rig.follow(rig.acquire('a', { signal, wait: 10 }));
    expect(listeners()).toBe(1);
    await rig.clock.advance(10);
    expect([refused.state, listeners()]).toEqual(['rejected', 0]);
    aborter.abort(reason);
    expect(lock.isHeld).toBe(true);
  });
});

it('stop ends waiting, attempts in progress and new acquisitions, and keeps locks that are held', async () => {
  await contended();
  const mine = await rig.lock('b');
  rig.scriptAll(only('acquire', obeysInSilence));
  const asking = rig.follow(rig.acquire('c'));
  const contending = rig.follow(rig.acquire('a'));
  const queued = await rig.outcomeAfter(10, rig.acquire('a'));
  rig.redlock.stop();
  await rig.clock.settle();
  const late = await rig.outcomeOf(rig.acquire('d'));
  const stopped = { reason: expect.any(LockServiceStoppedError), at: 10 };
  for (const call of [asking, contending, queued, late]) expect(call).toMatchObject(stopped);
  expect([mine.isHeld, rig.keys]).toEqual([true, [2, 2, 2]]);
});

it.each<[string, string, unknown, (rig: Rig) => Promise<unknown>]>([
  ['the master that has reserved', 'reserved', expect.stringMatching(/^m[123]$/), (rig) => holds(rig.peer())],
  ['no master if a call of its process before it has ended', 'admitted', undefined, holds],
  ['no master if its wait is over', 'deadline', undefined, (rig) => rig.peer().lock('a')],
  ['the master that can be used again', 'master-ready', 'm2', async (rig) => rig.scriptAll(says(unreachable))],
])('A call that is woken names %s', async (_, cause, master, begin) => {
  const woken: unknown[] = [];
  rig = new Rig({ observer: { woken: (...what) => woken.push(what) } });
  await begin(rig);
  rig.follow(rig.acquire('a', { wait: 300 }));
  await rig.clock.settle();
  if (cause === 'master-ready') rig.masters[1]!.becomeReady();
  else await rig.clock.advance(300);
  expect(woken).toEqual([[['a'], cause, master]]);
});

/** Has the lock for a moment. */
async function holds(by: Rig): Promise<void> {
  const lock = await by.lock('a');
  by.clock.schedule(100, () => void lock.release());
}
