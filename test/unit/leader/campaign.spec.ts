import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout } from 'node:timers/promises';
import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { LockLostError, QuorumUnavailableError, RedlockConfigError } from 'nestjs-redlock';
import { of } from 'rxjs';
import { LeadershipResignedError } from '../../../lib/leader/campaign.js';
import type { MasterRequest } from '../../../lib/masters/master.interface.js';
import { ElectionStage, type Instance, RESOURCE, TTL } from '../support/election-stage.js';
import { throwing } from '../../support/throwing.js';
import { maxListenersOf } from '../../support/listeners.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Rejects as most operations do that take a signal. */
const pauseUntil = (signal: AbortSignal): Promise<void> => setTimeout(HOUR, undefined, { signal });

let stage: ElectionStage;
let a: Instance;
let b: Instance;

beforeEach(() => {
  stage = new ElectionStage();
  a = stage.instance('a');
  b = stage.instance('b');
});

const outage = (): QuorumUnavailableError => new QuorumUnavailableError('lock', [RESOURCE], [], 2, 3);

describe('A campaign', () => {
  it('has no limit of hold, and followers keep their places however long they wait', async () => {
    const c = stage.instance('c');
    await stage.elect(a, b);
    await stage.clock.advance(2 * MINUTE + 3 * SECOND);
    await stage.elect(c);
    // Waits of any whole number of seconds that divides a minute would begin anew later for b than for c.
    await stage.clock.advance(2 * MINUTE - 2 * SECOND);
    expect(stage.leaders(a, b, c)).toEqual(['a']);
    expect(a.terms).toHaveLength(1);
    a.end();
    await stage.clock.advance(100);
    expect(stage.leaders(a, b, c)).toEqual(['b']);
  });

  it('ends with a configuration error, even of another copy of this package', async () => {
    jest.resetModules();
    const { RedlockConfigError: Other } = await import('../../../lib/errors.js');
    const error = new Other('ttl', 0, 'must be more');
    expect(error).not.toBeInstanceOf(RedlockConfigError);
    const hold = jest.spyOn(a.locks, 'holdWith').mockRejectedValue(error);
    await stage.elect(a);
    await stage.clock.advance(HOUR);
    expect(hold).toHaveBeenCalledTimes(1);
    expect(a.problems).toEqual([error]);
  });

  it.each([
    ['at least a second', 0, [1, 1, 1, 1, 1, 1]],
    ['up to half a minute, at random', 0.999_999, [2, 4, 8, 16, 30, 30]],
  ])('pauses for %s after a failure', async (_, fraction, pauses) => {
    const moments: number[] = [];
    jest.spyOn(a.locks, 'holdWith').mockImplementation(() => {
      moments.push(stage.clock.read().monotonic);
      return Promise.reject(outage());
    });
    a.fraction = fraction;
    a.campaign.start();
    await stage.clock.advance(2 * MINUTE);
    const between = moments.slice(1, 7).map((moment, i) => Math.round((moment - moments[i]!) / SECOND));
    expect(between).toEqual(pauses);
    expect(a.problems.length).toBe(moments.length);
    a.campaign.stop();
  });

  it('runs its method in a context of its own', async () => {
    const storage = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    a.work = async ({ ended }) => {
      seen.push(storage.getStore(), a.locks.current('other'), a.locks.current()?.resources);
      await ended;
    };
    await storage.run('a request', () =>
      a.locks.withLock('other', async () => {
        await stage.elect(a);
      }),
    );
    expect(seen).toEqual([undefined, undefined, [RESOURCE]]);
  });
});

describe('The term', () => {
  it('grows with each leader, and two campaigns of one process do not hand the lock over with one identity', async () => {
    const second = stage.instance('second', a.locks);
    await stage.elect(a);
    await stage.elect(second);
    const sinceOfA = a.leaderships[0]!.lock.holder!.since;
    a.end();
    await stage.clock.advance(100);
    expect(stage.leaders(a, second)).toEqual(['second']);
    expect(second.terms[0]).toBeGreaterThan(a.terms[0]!);
    const { lock, term, signal } = second.leaderships[0]!;
    await expect(lock.fencingToken()).resolves.toBe(term);
    expect(lock.holder!.since).not.toEqual(sinceOfA);
    // Of none of its signals does Node warn.
    expect([signal, lock.signal].map((each) => maxListenersOf(each))).toEqual([0, 0]);
  });

  it('is needed to lead: an instance that cannot draw it gives the lock back after one ttl, and pauses', async () => {
    a.refuse('draw');
    a.fraction = 0.999_999;
    a.campaign.start();
    await stage.clock.advance(TTL - SECOND);
    expect((await b.locks.inspect(RESOURCE)).state).toBe('held');
    await stage.clock.advance(SECOND + 10);
    expect((await b.locks.inspect(RESOURCE)).state).toBe('free');
    expect(stage.events).toEqual([]);
    expect(a.problems.map(String)).toEqual([expect.stringContaining('no term could be drawn within 10000 ms')]);
    a.answer = () => undefined;
    await stage.clock.advance(2 * SECOND);
    expect(stage.leaders(a)).toEqual(['a']);
  });
});

it('An instance that loses the lock before it has a term reports the loss', async () => {
  a.answer = ({ op }) =>
    op === 'draw' || op === 'extend' ? { kind: 'unreachable', reason: 'cut off', sent: false } : undefined;
  await stage.elect(a);
  await stage.clock.advance(TTL);
  expect(a.problems).toEqual([expect.any(LockLostError)]);
  expect(stage.events).toEqual([]);
});

describe('The state', () => {
  it('is no condition: an instance that cannot store it leads, and tries again', async () => {
    a.refuse('open-state', 'write-state');
    a.campaign.start();
    await stage.clock.advance(MINUTE);
    expect(stage.events).toEqual(['a elected', 'a runs']);
    expect(a.problems).toEqual([expect.any(QuorumUnavailableError)]);
    a.answer = () => undefined;
    await stage.clock.advance(MINUTE);
    await expect(b.locks.readState(RESOURCE)).resolves.toMatchObject({ value: { term: a.terms[0] } });
    expect(stage.leaders(a)).toEqual(['a']);
  });

  it.each<[string, () => unknown, string]>([
    ['a function that fails', throwing(new Error('no address')), 'no address'],
    ['data that is no JSON', () => 1n, 'must be a value that JSON can represent'],
  ])('of a leader with %s has no data', async (_, data, problem) => {
    a.data = data;
    await stage.elect(a);
    await stage.clock.advance(5 * SECOND);
    expect(stage.leaders(a)).toEqual(['a']);
    expect(a.problems.map(String)).toEqual([expect.stringContaining(problem)]);
    const { value } = await b.locks.readState<object>(RESOURCE);
    expect(value).toMatchObject({ term: a.terms[0] });
    expect(value).not.toHaveProperty('data');
  });

  it('has the data that a function promises', async () => {
    a.data = async () => ({ port: 80 });
    await stage.elect(a);
    await expect(b.locks.readState(RESOURCE)).resolves.toMatchObject({ value: { data: { port: 80 } } });
  });

  it('of a holder that was outbid means that the lock is lost', async () => {
    a.refuse('open-state', 'write-state');
    await stage.elect(a);
    await stage.clock.advance(2 * SECOND);
    a.answer = ({ op }) =>
      op === 'write-state' ? { kind: 'held', remaining: 1, claim: Number.MAX_SAFE_INTEGER } : undefined;
    await stage.clock.advance(MINUTE);
    expect(stage.events.slice(0, 3)).toEqual(['a elected', 'a runs', 'a lost']);
  });
});

describe('An election', () => {
  it('is one step: the instance leads, this is reported, and the method starts', async () => {
    const seen: string[] = [];
    a.observer = {
      elected: () => {
        seen.push(`elected, leading: ${a.campaign.isLeader}`);
        queueMicrotask(() => seen.push('a later turn'));
      },
    };
    a.work = async ({ ended }) => {
      seen.push(`runs, leading: ${a.campaign.isLeader}`);
      await ended;
    };
    await stage.elect(a);
    expect(seen).toEqual(['elected, leading: true', 'runs, leading: true', 'a later turn']);
  });

  it('whose listener takes longer than the lock lasts is lost, and the method does not run', async () => {
    const seen: string[] = [];
    a.observer = {
      elected: () => stage.clock.stall(2 * TTL),
      lost: () => {
        seen.push(...stage.events, `leading: ${a.campaign.isLeader}`);
        a.campaign.stop();
      },
    };
    a.campaign.start();
    await stage.clock.settle();
    expect(seen).toEqual(['a elected', 'a lost', 'leading: false']);
    expect(a.terms).toEqual([]);
  });

  it('looks at the clock in the step in which it happens', async () => {
    const hold = a.locks.holdWith.bind(a.locks);
    jest.spyOn(a.locks, 'holdWith').mockImplementationOnce(async (...args) => {
      const scope = await hold(...args);
      const assertHeld = scope.lock.assertHeld.bind(scope.lock);
      scope.lock.assertHeld = () => {
        assertHeld();
        stage.clock.stall(2 * TTL);
      };
      return scope;
    });
    a.campaign.start();
    await stage.clock.settle();
    expect(stage.events).toEqual([]);
  });
});

describe('A leader', () => {
  it('that stood still does not lead when it goes on, before any timer has run', async () => {
    await stage.elect(a);
    stage.clock.stall(TTL);
    expect(a.campaign.isLeader).toBe(false);
    await stage.clock.advance(0);
    expect(stage.events.slice(0, 3)).toEqual(['a elected', 'a runs', 'a lost']);
  });

  it('whose machine was suspended is followed by another one, and does not lead when it goes on', async () => {
    await stage.elect(a, b);
    a.clock.suspend(2 * TTL);
    expect(a.campaign.isLeader).toBe(false);
    await stage.clock.advance(5 * SECOND);
    expect(stage.leaders(a, b)).toEqual(['b']);
    expect(b.terms[0]).toBeGreaterThan(a.terms[0]!);
  });

  // n8n-io/n8n#8401.
  it('does not lead any more when its end is reported', async () => {
    const seen: boolean[] = [];
    a.observer = { resigned: () => seen.push(a.campaign.isLeader), lost: () => seen.push(a.campaign.isLeader) };
    await stage.elect(a);
    a.end();
    await stage.clock.advance(2 * SECOND);
    stage.clock.stall(TTL);
    await stage.clock.advance(2 * SECOND);
    expect(stage.events).toEqual(
      ['elected', 'runs', 'resigned', 'elected', 'runs', 'lost', 'elected', 'runs'].map((event) => `a ${event}`),
    );
    expect(seen).toEqual([false, false]);
  });

  it.each([3 * SECOND, TTL, 3 * TTL])(
    'that an operator deposes is followed by another one, with a ttl of %i ms',
    async (ttl) => {
      for (const { campaign } of [a, b]) Object.assign(campaign.settings, { ttl });
      await stage.elect(a, b);
      await stage.clock.advance(5 * ttl + 3 * SECOND);
      const { operator } = b.locks;
      await operator.revoke({ resource: RESOURCE }, await operator.owners({ resource: RESOURCE }));
      await stage.clock.advance(ttl + 4 * SECOND);
      expect(stage.leaders(a, b)).toEqual(['b']);
      expect(stage.events).toContain('a lost');
    },
  );

  it('that is cut off is followed within one ttl and a poll, by one of many', async () => {
    const followers = Array.from({ length: 20 }, (_, i) => stage.instance(`f${i}`));
    await stage.elect(a);
    for (const { campaign } of followers) campaign.start();
    await stage.clock.advance(20 * SECOND);
    a.cutOff();
    await stage.clock.advance(TTL + 4 * SECOND);
    expect(stage.leaders(a, ...followers)).toHaveLength(1);
    expect(stage.events.filter((event) => event.endsWith(' elected'))).toHaveLength(2);
    expect(stage.events).toContain('a lost');
  });
});

describe('Followers', () => {
  it('see a new leader within 4 s, by the polls that they make anyway', async () => {
    const c = stage.instance('c');
    await stage.elect(a, b, c);
    await stage.clock.advance(MINUTE);
    const reads = c.asked['read-state'];
    expect(stage.events.slice(2)).toEqual(expect.arrayContaining(['b sees a', 'c sees a']));
    a.end();
    await stage.clock.advance(4_100);
    expect(stage.events.slice(-2)).toEqual(expect.arrayContaining(['c sees b']));
    await stage.clock.advance(2 * MINUTE);
    // One question to each master for each leader.
    expect(c.asked['read-state']).toBe(reads! + stage.masters.length);
    expect(c.asked['inspect']).toBeUndefined();
    expect(stage.events.filter((event) => event === 'c sees b')).toHaveLength(1);
  });

  it('drop a term that is not larger than one that they have seen', async () => {
    await stage.elect(a);
    const lock = a.leaderships[0]!.lock;
    const { instance, since } = lock.holder!;
    await lock.state.store('a record', { term: 7, instance, since: since.getTime() }, {});
    const own = b as unknown as { campaign: { lastTerm: number } };
    own.campaign.lastTerm = 8;
    await stage.elect(b);
    await stage.clock.advance(MINUTE);
    expect(stage.events.filter((event) => event.startsWith('b'))).toEqual([]);
  });
});

describe('A method', () => {
  it('that returns at once has few leaderships, and a warning', async () => {
    a.work = async () => undefined;
    a.fraction = 0.999_999;
    a.campaign.start();
    await stage.clock.advance(MINUTE);
    expect(a.terms.length).toBeLessThan(7);
    expect(String(a.problems[0])).toContain('without being asked to');
    expect(String(a.problems[0])).toContain('await leadership.ended');
    a.campaign.stop();
  });

  it('that lasted for a minute has a short pause again', async () => {
    a.fraction = 0.999_999;
    await stage.elect(a);
    const pauses: number[] = [];
    for (const lasts of [10 * SECOND, 10 * SECOND, MINUTE, 10 * SECOND]) {
      await stage.clock.advance(lasts);
      a.end();
      const since = stage.clock.read().monotonic;
      const before = a.terms.length;
      while (a.terms.length === before) await stage.clock.advance(100);
      pauses.push(Math.round((stage.clock.read().monotonic - since) / SECOND));
    }
    expect(pauses).toEqual([2, 4, 2, 4]);
    expect(a.problems).toEqual([]);
  });

  it.each([
    ['nothing', () => undefined, 'returns a promise'],
    ['a stream', () => of(1), 'after the method has returned'],
  ])('that returns %s is a configuration error, and this instance does not campaign again', async (_, work, advice) => {
    a.work = work;
    await stage.elect(a);
    await stage.clock.advance(HOUR);
    expect(stage.events).toEqual(['a elected', 'a runs', 'a resigned']);
    expect(a.problems).toEqual([expect.any(RedlockConfigError)]);
    expect(String(a.problems[0])).toContain(`@Leader on Outbox.relay`);
    expect(String(a.problems[0])).toContain(advice);
    await expect(b.locks.inspect(RESOURCE)).resolves.toMatchObject({ state: 'free' });
  });

  it('that fails without a reason resigns with an error', async () => {
    const errors: unknown[] = [];
    a.observer = { resigned: (_election, _term, thrown) => errors.push(thrown) };
    const reason: Error = undefined as never;
    a.work = () => Promise.reject(reason);
    await stage.elect(a);
    a.campaign.stop();
    expect(errors).toEqual([new Error('the method has failed without a reason')]);
  });

  it('that releases the lock is asked to end, and resigns when it has', async () => {
    a.work = ({ lock }) => {
      void lock.release();
      return new Promise<void>((resolve) => (a.end = resolve));
    };
    await stage.elect(a);
    const { signal } = a.leaderships[0]!;
    expect(signal.reason).toBeInstanceOf(LockLostError);
    expect(signal.reason).toMatchObject({ cause: 'released' });
    expect([a.campaign.isLeader, ...stage.events]).toEqual([false, 'a elected', 'a runs']);
    a.end();
    await stage.clock.settle();
    expect([a.campaign.isLeader, ...stage.events]).toEqual([false, 'a elected', 'a runs', 'a resigned']);
  });

  it('that goes on after a loss is reported, and nothing is campaigned for until it has ended', async () => {
    a.clingOn();
    await stage.elect(a);
    stage.clock.stall(TTL);
    await stage.clock.advance(999);
    expect([a.campaign.isOverrun, a.leaderships[0]!.signal.aborted]).toEqual([true, true]);
    expect(stage.events).not.toContain('a overrun');
    await stage.clock.advance(HOUR);
    expect(stage.events).toEqual(['a elected', 'a runs', 'a lost', 'a overrun']);
    await expect(b.locks.inspect(RESOURCE)).resolves.toMatchObject({ state: 'free', waiting: 0 });
    a.end();
    await stage.clock.advance(100);
    expect(a.campaign.isOverrun).toBe(false);
    expect(stage.events.slice(4)).toEqual(['a elected', 'a runs']);
  });
});

describe('A shutdown', () => {
  it('leaves the queue at once', async () => {
    await stage.elect(a, b);
    await stage.clock.advance(SECOND);
    expect((await a.locks.inspect(RESOURCE)).waiting).toBe(1);
    b.campaign.stop();
    await stage.clock.settle();
    expect((await a.locks.inspect(RESOURCE)).waiting).toBe(0);
  });

  it('aborts the signal, and keeps the lock until the method has ended', async () => {
    a.clingOn();
    await stage.elect(a, b);
    a.campaign.stop();
    expect(a.leaderships[0]!.signal.reason).toBeInstanceOf(LeadershipResignedError);
    await stage.clock.advance(MINUTE);
    expect(stage.leaders(a, b)).toEqual([]);
    expect((await b.locks.inspect(RESOURCE)).holder?.instance).toBe('a');
    a.end();
    await stage.clock.advance(100);
    expect(stage.events.filter((event) => !event.includes('sees')).slice(2)).toEqual([
      ...['a resigned', 'b elected', 'b runs'],
    ]);
  });

  it.each<[string, MasterRequest['op'][], number]>([
    ['the draw', ['draw'], 0],
    ['the storing of the state', ['open-state', 'write-state'], 5 * SECOND],
  ])('during %s releases the lock, and elects no more', async (_, refused, within) => {
    a.refuse(...refused);
    await stage.elect(a);
    a.campaign.stop();
    await stage.clock.advance(within);
    expect([stage.events, a.problems]).toEqual([[], []]);
    await expect(b.locks.inspect(RESOURCE)).resolves.toMatchObject({ state: 'free' });
  });

  it('is no error of a method that ends by its signal, and other errors are', async () => {
    const errors: unknown[] = [];
    const failure = new Error('no database');
    for (const instance of [a, b]) instance.observer = { resigned: (_election, _term, error) => errors.push(error) };
    a.work = ({ signal }) => pauseUntil(signal);
    b.work = ({ ended }) => ended.then(() => Promise.reject(failure));
    for (const instance of [a, b]) {
      await stage.elect(instance);
      instance.campaign.stop();
      await stage.clock.advance(100);
    }
    expect(errors).toEqual([undefined, failure]);
  });
});
