import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  type Failure,
  failureOf,
  type Pause,
  type Step,
  stepAfter,
  transitionAfter,
} from '../../../lib/waiting/transitions.js';
import { LockNotAcquiredError } from '../../../lib/waiting/lock-not-acquired.error.js';
import { LockServiceStoppedError, QuorumUnavailableError } from '../../../lib/redlock/errors.js';
import { Rig } from '../support/rig.js';
import {
  cutOff,
  granted,
  hangs,
  held,
  obeysAfter,
  only,
  refused,
  says,
  tellsAfter,
  unreachable,
} from '../support/scripted-master.js';

const noWait = { wait: 0 };

let rig: Rig;

beforeEach(() => void (rig = new Rig()));

describe('An attempt', () => {
  // Protocol 5.6
  it('without a wait asks the home master first while others wait, and all if it is silent', async () => {
    const peer = rig.peer();
    const first = await rig.lock('a');
    const waiter = peer.follow(peer.acquire('a', { wait: 60_000 }));
    await rig.clock.advance(10);
    await first.release();
    await rig.clock.advance(10);
    expect(waiter.state).toBe('fulfilled');
    rig.forget();
    expect(await rig.outcomeOf(rig.acquire('a', noWait))).toMatchObject({ reason: expect.any(LockNotAcquiredError) });
    const asked = rig.counts('acquire');
    expect([...asked].sort()).toEqual([0, 0, 1]);
    await waiter.value!.release();
    rig.script(asked.indexOf(1), hangs);
    expect(await rig.outcomeAfter(100, rig.acquire('a', noWait))).toMatchObject({ state: 'fulfilled' });
  });

  // Protocol 4.5
  it('gives the same token to all masters, and the next attempt a new one', async () => {
    const tokens = () => rig.masters.map((master) => master.requests('acquire').at(-1)!.token);
    await (await rig.lock('a')).release();
    const first = new Set(tokens());
    await rig.lock('a');
    const second = new Set(tokens());
    expect([first.size, second.size, new Set([...first, ...second]).size]).toEqual([1, 1, 2]);
  });

  // Protocol 4.4
  it('leaves a validity of the ttl minus elapsed time and drift', async () => {
    rig = new Rig({ driftFactor: 0.02 });
    rig.scriptAll(tellsAfter(30));
    const lock = await rig.outcomeAfter(30, rig.acquire('a', { ttl: 1_000 }));
    expect(lock.value!.remaining()).toBe(1_000 - 30 - 20 - 2);
  });

  // Protocol 3.2
  it('counts the validity from its own start, not from the start of the wait', async () => {
    const first = await rig.peer().lock('a');
    const second = await rig.outcomeAfter(2_000, rig.acquire('a', { ttl: 1_000, wait: 5_000 }));
    await first.release();
    await rig.clock.advance(500);
    expect(second.value!.remaining()).toBe(1_000 - 12 - (rig.clock.now - second.at!));
  });

  // Protocol 4.4
  it.each([
    ['takes longer than the ttl', 0.01, 100],
    ['leaves only the drift of it', 0.5, 48],
  ])('fails and is released if it %s', async (_, driftFactor, stall) => {
    rig = new Rig({ driftFactor });
    rig.scriptAll(only('acquire', tellsAfter(20)));
    const lock = await rig.outcomeOf(rig.acquire('a', { ttl: 100, wait: 0 }));
    // The process stalls. The answers are in the socket when it continues.
    rig.clock.stall(stall);
    await rig.clock.advance(0);
    await rig.clock.settle();
    expect(lock.reason).toBeInstanceOf(QuorumUnavailableError);
    expect(String(lock.reason)).toContain('before its validity has ended');
    expect(rig.keys).toEqual([0, 0, 0]);
  });

  // Protocol 4.5
  it.each([
    ['refused', says(refused)],
    ['did not answer', hangs],
    ['lost the connection', says(cutOff)],
  ])('releases on all masters after a failure, including those that %s', async (_, behaviour) => {
    rig.script(2, only('acquire', behaviour));
    const lock = await rig.outcomeAfter(50, rig.acquire('a', noWait));
    expect([lock.state, rig.counts('release'), rig.keys]).toEqual(['rejected', [1, 1, 1], [0, 0, 0]]);
  });

  it('releases only what it sent: a master without a connection gets no release', async () => {
    rig.script(2, says(unreachable));
    await expect(rig.acquire('a', noWait)).rejects.toThrow(QuorumUnavailableError);
    await rig.clock.settle();
    expect(rig.counts('release')).toEqual([0, 0, 1]);
    expect(rig.keys).toEqual([0, 0, 0]);
  });

  // Protocol 4.5
  it('follows a late grant with its release', async () => {
    rig.scriptAll(obeysAfter(200));
    expect(await rig.outcomeAfter(50, rig.acquire('a', noWait))).toMatchObject({ state: 'rejected' });
    await rig.clock.advance(1_000);
    expect(rig.keys).toEqual([0, 0, 0]);
  });

  // Protocol 4.1
  it('gives a master at most a quarter of the ttl to answer', async () => {
    rig.scriptAll(hangs);
    expect(await rig.outcomeAfter(100, rig.acquire('a', { ttl: 100, wait: 0 }))).toMatchObject({ at: 25 });
  });
});

describe('Several resources', () => {
  // Protocol 2.1
  it('are taken together, with the keys in sorted order', async () => {
    rig = new Rig({ keyPrefix: 'p:' });
    const lock = await rig.lock(['b', 'a', 'b']);
    expect(lock.resources).toEqual(['b', 'a']);
    expect(rig.masters[0]!.requests('acquire')[0]!.keys).toEqual(['p:a', 'p:b']);
    expect(rig.keys).toEqual([2, 2, 2]);
    await lock.release();
    expect(rig.keys).toEqual([0, 0, 0]);
  });
});

// Protocol 4.6
describe('A failed acquisition', () => {
  it.each([
    ['all held', 'held by another holder', LockNotAcquiredError, [held, held, held]],
    ['held and dead', 'held by another holder', LockNotAcquiredError, [held, unreachable, held]],
    ['a split vote', 'held by another holder', LockNotAcquiredError, [granted, held, refused]],
    ['all dead', 'an outage', QuorumUnavailableError, [unreachable, unreachable, unreachable]],
    ['a majority dead, one held', 'an outage', QuorumUnavailableError, [unreachable, refused, held]],
    ['a majority dead, one granted', 'an outage', QuorumUnavailableError, [granted, refused, unreachable]],
  ])('with %s is reported as %s', async (_, __, error, answers) => {
    rig.scriptEach(...answers.map((answer) => only('acquire', says(answer))));
    await expect(rig.acquire('a', noWait)).rejects.toThrow(error);
  });

  it('reports the answer of each master, and which it did not wait for', async () => {
    rig = new Rig({ masters: 5 });
    const answers = [refused, unreachable, { kind: 'held', remaining: 1_234.5 } as const, granted].map(says);
    rig.scriptEach(...[...answers, hangs].map((behaviour) => only('acquire', behaviour)));
    const lock = await rig.outcomeAfter(50, rig.acquire('a', noWait));
    const error = lock.reason as QuorumUnavailableError;
    expect(error.message).toBe(
      'cannot lock "a": 3 of 5 masters must vote (m1: NOAUTH Authentication required.; ' +
        'm2: unreachable, connection refused; m3: held for 1235 ms more; m4: granted; m5: no answer in time)',
    );
    expect(error.answers.map(({ master }) => master)).toEqual(['m1', 'm2', 'm3', 'm4', 'm5']);
    rig.scriptEach(...Array(3).fill(only('acquire', says(held))));
    await expect(rig.acquire('a', noWait)).rejects.toThrow('m3: held; m4: granted; m5: not waited for');
  });

  it.each([0, 100])('reports when the resource could be free (wait: %i)', async (wait) => {
    await rig.peer().lock('a', { ttl: 8_000 });
    await rig.clock.advance(3_000);
    const { reason } = await rig.outcomeAfter(200, rig.acquire('a', { wait }));
    const retryAfter = wait === 0 ? 5_000 : expect.any(Number);
    expect(reason).toMatchObject({ code: 'LOCK_NOT_ACQUIRED', statusCode: 423, retryAfter, resources: ['a'] });
  });

  it.each([0, 300])('never shows the token (wait: %i)', async (wait) => {
    await rig.peer().lock('a');
    const held = await rig.outcomeAfter(400, rig.acquire('a', { wait }));
    rig.script(2, only('acquire', says(refused)));
    const down = await rig.outcomeAfter(400, rig.acquire('b', { wait }));
    for (const { reason } of [held, down]) {
      expect(reason).toBeInstanceOf(Error);
      expect(`${String(reason)}${JSON.stringify(reason)}`).not.toContain('secret');
    }
  });
});

// Protocol 5.6
it.each(['its signal', 'the service'])(
  'An acquisition that ends in a hook of an observer asks no master: %s',
  async (what) => {
    const stop = new AbortController();
    const enough = new Error('enough');
    const end = (): undefined => {
      if (what === 'its signal') stop.abort(enough);
      else rig.redlock.stop();
    };
    rig = new Rig({ observer: { acquiring: end } });
    const acquired = await rig.outcomeOf(rig.acquire('a', { wait: 5_000, signal: stop.signal }));
    expect(acquired.reason).toEqual(what === 'its signal' ? enough : expect.any(LockServiceStoppedError));
    expect(rig.masters.flatMap((master) => master.requests('acquire'))).toEqual([]);
  },
);

describe('transitionAfter', () => {
  it.each<[Step, Failure, string | undefined, Step | 'pause']>([
    ['all', 'refused', undefined, 'home'],
    ['all', 'split', undefined, 'home'],
    ['all', 'unavailable', 'failure', 'pause'],
    ['all', 'late', 'failure', 'pause'],
    ...(['home', 'reservation'] as const).flatMap((step): [Step, Failure, string, Step | 'pause'][] => [
      [step, 'refused', 'refusal', 'pause'],
      [step, 'split', 'failure', 'pause'],
      [step, 'unavailable', 'failure', 'all'],
      [step, 'late', 'failure', 'pause'],
    ]),
  ])('after an attempt of kind "%s" that failed as "%s", records %s and goes on with "%s"', (...row) => {
    const [step, failure, schedule, next] = row;
    expect(transitionAfter(step, failure, false)).toEqual({ schedule, next });
  });
});

it.each([
  ['held', false, 'refused'],
  ['held', true, 'split'],
  ['unavailable', false, 'unavailable'],
  ['unavailable', true, 'unavailable'],
  ['granted', false, 'late'],
] as const)('failureOf names an outcome "%s" with isSplit %s "%s"', (outcome, isSplit, failure) => {
  expect(failureOf({ outcome, isSplit })).toBe(failure);
});

describe('stepAfter', () => {
  const quiet: Pause = {
    ...{ step: 'home', failure: 'refused', cause: undefined, hasOneKey: true },
    ...{ expiry: 9_000, poll: 750, isWide: false },
  };

  it.each<[string, Partial<Pause>, Step]>([
    ['a poll', {}, 'home'],
    ['a poll of all masters', { isWide: true }, 'all'],
    ['the expiry of the keys', { expiry: 500, isWide: true }, 'home'],
    ['a pause without a known expiry', { expiry: Infinity }, 'all'],
    ['a notification', { cause: 'reserved' }, 'reservation'],
    ['a notification for one of several keys', { cause: 'reserved', hasOneKey: false }, 'home'],
    ['another cause to wake', { cause: 'released', isWide: true }, 'home'],
    ['a split vote', { failure: 'split', isWide: true }, 'home'],
    ['an attempt on all masters', { step: 'all', isWide: true }, 'home'],
  ])('after %s, contacts the right masters', (_, change, step) =>
    expect(stepAfter({ ...quiet, ...change })).toBe(step),
  );
});
