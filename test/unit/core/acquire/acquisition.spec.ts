import { describe, expect, it } from '@jest/globals';
import {
  type Failure,
  failureOf,
  type Pause,
  type Step,
  stepAfter,
  transitionAfter,
} from '../../../../lib/core/acquire/transitions.js';
import { LockNotAcquiredError, LockServiceStoppedError, QuorumUnavailableError } from '../../../../lib/core/errors.js';
import { NO_WITNESS } from '../../../../lib/core/witness.interface.js';
import { Rig } from '../../support/rig.js';
import {
  after,
  cutOff,
  granted,
  hangs,
  held,
  obeysAfter,
  obeysInSilence,
  only,
  refused,
  says,
  tellsAfter,
  unreachable,
} from '../../support/scripted-master.js';

const noWait = { wait: 0 };

describe('An attempt', () => {
  // Protocol 4.1
  it('sends its requests to all masters at the same time', async () => {
    const rig = new Rig({ masters: 5 });
    rig.scriptAll(tellsAfter(7));
    const lock = rig.acquire('a');
    expect(rig.masters.map((master) => master.times('acquire'))).toEqual([[0], [0], [0], [0], [0]]);
    await rig.clock.advance(7);
    expect((await lock).isHeld).toBe(true);
  });

  // Protocol 4.5
  it('gives the same token to all masters, and the next attempt a new one', async () => {
    const rig = new Rig();
    const tokens = () => rig.masters.map((master) => master.requests('acquire').at(-1)!.token);
    await (await rig.lock('a')).release();
    const first = new Set(tokens());
    await rig.lock('a');
    const second = new Set(tokens());
    expect([first.size, second.size, new Set([...first, ...second]).size]).toEqual([1, 1, 2]);
  });

  it.each([1, 2, 3, 4, 5])('takes a lock on %i masters that no other process gets', async (masters) => {
    const rig = new Rig({ masters });
    const lock = await rig.lock('a');
    expect(lock.isHeld).toBe(true);
    await expect(new Rig({}, rig).acquire('a', noWait)).rejects.toThrow(LockNotAcquiredError);
  });

  // Protocol 4.4
  it('leaves a validity of the ttl minus elapsed time and drift', async () => {
    const rig = new Rig({ driftFactor: 0.02 });
    rig.scriptAll(tellsAfter(30));
    const lock = rig.acquire('a', { ttl: 1_000 });
    await rig.clock.advance(30);
    expect((await lock).remaining()).toBe(1_000 - 30 - 20 - 2);
  });

  // Protocol 3.2
  it('counts the validity from its own start, not from the start of the wait', async () => {
    const rig = new Rig();
    const other = new Rig({}, rig);
    const first = await other.lock('a');
    const second = rig.follow(rig.acquire('a', { ttl: 1_000, wait: 5_000 }));
    await rig.clock.advance(2_000);
    await first.release();
    await rig.clock.advance(500);
    const { value, at } = second;
    expect(value!.remaining()).toBe(1_000 - 12 - (rig.clock.now - at!));
  });

  // Protocol 4.4
  it('fails and is released if it takes longer than the ttl', async () => {
    const rig = new Rig();
    rig.scriptAll(only('acquire', tellsAfter(20)));
    const lock = rig.follow(rig.acquire('a', { ttl: 100, wait: 0 }));
    await rig.clock.settle();
    // The process stalls. The answers are in the socket when it continues.
    rig.clock.stall(100);
    await rig.clock.advance(0);
    await rig.clock.settle();
    expect(lock.reason).toBeInstanceOf(QuorumUnavailableError);
    expect(String(lock.reason)).toContain('before its validity has ended');
    expect(rig.keys).toEqual([0, 0, 0]);
  });

  it('does not rely on a lock of which only the drift is left', async () => {
    const rig = new Rig({ driftFactor: 0.5 });
    rig.scriptAll(only('acquire', tellsAfter(25)));
    const lock = rig.follow(rig.acquire('a', { ttl: 100, wait: 0 }));
    await rig.clock.settle();
    rig.clock.stall(48);
    await rig.clock.advance(0);
    expect(lock.state).toBe('rejected');
    expect(rig.keys).toEqual([0, 0, 0]);
  });

  // Protocol 4.5
  it.each([
    ['refused', says(refused)],
    ['did not answer', hangs],
    ['lost the connection', says(cutOff)],
  ])('releases on all masters after a failure, including those that %s', async (_, behaviour) => {
    const rig = new Rig();
    rig.script(2, only('acquire', behaviour));
    const lock = rig.follow(rig.acquire('a', noWait));
    await rig.clock.advance(50);
    expect(lock.state).toBe('rejected');
    expect(rig.masters.map((master) => master.requests('release').length)).toEqual([1, 1, 1]);
    expect(rig.keys).toEqual([0, 0, 0]);
  });

  it('releases only what it sent: a master without a connection gets no release', async () => {
    const rig = new Rig();
    rig.script(2, says(unreachable));
    await expect(rig.acquire('a', noWait)).rejects.toThrow(QuorumUnavailableError);
    await rig.clock.settle();
    expect(rig.masters.map((master) => master.requests('release').length)).toEqual([0, 0, 1]);
    expect(rig.keys).toEqual([0, 0, 0]);
  });

  // Protocol 4.5
  it('follows a late grant with its release', async () => {
    const rig = new Rig();
    rig.scriptAll(obeysAfter(200));
    const lock = rig.follow(rig.acquire('a', noWait));
    await rig.clock.advance(50);
    expect(lock.state).toBe('rejected');
    await rig.clock.advance(1_000);
    expect(rig.keys).toEqual([0, 0, 0]);
  });

  it('is not blocked by the partial key of the previous attempt', async () => {
    const rig = new Rig();
    rig.script(2, only('acquire', obeysInSilence));
    const lock = rig.follow(rig.acquire('a', { wait: 1_000 }));
    await rig.clock.advance(50);
    expect(lock.state).toBe('pending');
    rig.scriptAll(tellsAfter(0));
    await rig.clock.advance(100);
    expect(lock.state).toBe('fulfilled');
  });

  it('does not wait for a hung minority', async () => {
    const rig = new Rig({ masters: 5 });
    rig.script(2, hangs);
    const lock = await rig.lock('a');
    expect(lock.isHeld).toBe(true);
    await lock.release();
    expect(rig.clock.now).toBe(0);
  });

  // Protocol 4.1
  it('gives a master at most a quarter of the ttl to answer', async () => {
    const rig = new Rig();
    rig.scriptAll(hangs);
    const lock = rig.follow(rig.acquire('a', { ttl: 100, wait: 0 }));
    await rig.clock.advance(100);
    expect(lock.at).toBe(25);
  });

  it('lets neither of two rivals wait forever when they split the votes', async () => {
    const rig = new Rig({ masters: 2 });
    const rival = new Rig({}, rig);
    const [left, right] = rig.masters;
    left!.behaviour = after(1, tellsAfter(5));
    right!.behaviour = after(2, tellsAfter(5));
    const one = rig.follow(rig.acquire('a', noWait));
    left!.behaviour = after(2, tellsAfter(5));
    right!.behaviour = after(1, tellsAfter(5));
    const two = rival.follow(rival.acquire('a', noWait));
    await rig.clock.advance(20);
    expect([one.at, two.at]).toEqual([7, 7]);
    expect(one.reason).toBeInstanceOf(LockNotAcquiredError);
    expect(two.reason).toBeInstanceOf(LockNotAcquiredError);
    expect(rig.keys).toEqual([0, 0]);
  });
});

describe('Several resources', () => {
  // Protocol 2.1
  it('are taken together, with the keys in sorted order', async () => {
    const rig = new Rig({ keyPrefix: 'p:' });
    const lock = await rig.lock(['b', 'a', 'b']);
    expect(lock.resources).toEqual(['b', 'a']);
    expect(rig.masters[0]!.requests('acquire')[0]!.keys).toEqual(['p:a', 'p:b']);
    expect(rig.keys).toEqual([2, 2, 2]);
    await lock.release();
    expect(rig.keys).toEqual([0, 0, 0]);
  });

  it('are taken together or not at all', async () => {
    const rig = new Rig();
    await new Rig({}, rig).lock('b');
    await expect(rig.acquire(['a', 'b', 'c'], noWait)).rejects.toThrow(LockNotAcquiredError);
    expect(rig.keys).toEqual([1, 1, 1]);
  });
});

// Protocol 4.6
describe('A failed acquisition', () => {
  it.each([
    ['all held', [held, held, held]],
    ['held and dead', [held, unreachable, held]],
    ['a split vote', [granted, held, refused]],
  ])('with %s is reported as held by another holder', async (_, answers) => {
    const rig = new Rig();
    rig.masters.forEach((master, i) => (master.behaviour = only('acquire', says(answers[i]!))));
    await expect(rig.acquire('a', noWait)).rejects.toThrow(LockNotAcquiredError);
  });

  it.each([
    ['all dead', [unreachable, unreachable, unreachable]],
    ['a majority dead, one held', [unreachable, refused, held]],
    ['a majority dead, one granted', [granted, refused, unreachable]],
  ])('with %s is reported as an outage', async (_, answers) => {
    const rig = new Rig();
    rig.masters.forEach((master, i) => (master.behaviour = only('acquire', says(answers[i]!))));
    await expect(rig.acquire('a', noWait)).rejects.toThrow(QuorumUnavailableError);
  });

  it('reports the answer of each master', async () => {
    const rig = new Rig({ masters: 5 });
    const answers = [refused, unreachable, { kind: 'held', remaining: 1_234.5 } as const, granted];
    rig.masters.forEach((master, i) => (master.behaviour = only('acquire', answers[i] ? says(answers[i]) : hangs)));
    const lock = rig.follow(rig.acquire('a', noWait));
    await rig.clock.advance(50);
    const error = lock.reason as QuorumUnavailableError;
    expect(error.message).toBe(
      'cannot lock "a": 3 of 5 masters must vote (m1: NOAUTH Authentication required.; ' +
        'm2: unreachable, connection refused; m3: held for 1235 ms more; m4: granted; m5: no answer in time)',
    );
    expect(error.answers.map(({ master }) => master)).toEqual(['m1', 'm2', 'm3', 'm4', 'm5']);
  });

  it('reports the masters that it did not wait for', async () => {
    const rig = new Rig();
    rig.masters.forEach((master, i) => (master.behaviour = only('acquire', i < 2 ? says(held) : hangs)));
    await expect(rig.acquire('a', noWait)).rejects.toThrow('(m1: held; m2: held; m3: not waited for)');
  });

  it('reports when the resource could be free', async () => {
    const rig = new Rig();
    await new Rig({}, rig).lock('a', { ttl: 8_000 });
    await rig.clock.advance(3_000);
    const error = await rig.acquire('a', noWait).catch((error: unknown) => error);
    expect(error).toMatchObject({ code: 'LOCK_NOT_ACQUIRED', statusCode: 423, retryAfter: 5_000, resources: ['a'] });
  });

  it.each([0, 300])('never shows the token (wait: %i)', async (wait) => {
    const rig = new Rig();
    await new Rig({}, rig).lock('a');
    const held = rig.follow(rig.acquire('a', { wait }));
    await rig.clock.advance(400);
    rig.script(2, only('acquire', says(refused)));
    const down = rig.follow(rig.acquire('b', { wait }));
    await rig.clock.advance(400);
    for (const { reason } of [held, down]) {
      expect(reason).toBeInstanceOf(Error);
      expect(`${String(reason)}${JSON.stringify(reason)}`).not.toContain('secret');
    }
  });
});

// Protocol 5.6
describe('An acquisition that ends in a hook of an observer', () => {
  it.each(['its signal', 'the service'])('asks no master: %s', async (what) => {
    const stop = new AbortController();
    const enough = new Error('enough');
    const end = (): undefined => {
      if (what === 'its signal') stop.abort(enough);
      else rig.redlock.stop();
    };
    const rig: Rig = new Rig({ observer: { acquiring: end } });
    const acquired = rig.follow(rig.acquire('a', { wait: 5_000, signal: stop.signal }));
    await rig.clock.settle();
    expect(acquired.reason).toEqual(what === 'its signal' ? enough : expect.any(LockServiceStoppedError));
    expect(rig.masters.flatMap((master) => master.requests('acquire'))).toEqual([]);
  });
});

describe('transitionAfter', () => {
  it.each(['refused', 'split'] as const)('pauses before the home master if that fails and all have %s', (failure) => {
    expect(transitionAfter('all', failure, true)).toEqual({ schedule: undefined, next: 'pause' });
  });

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

describe('failureOf', () => {
  it.each([
    ['held', false, 'refused'],
    ['held', true, 'split'],
    ['unavailable', false, 'unavailable'],
    ['unavailable', true, 'unavailable'],
    ['granted', false, 'late'],
  ] as const)('names an outcome "%s" with isSplit %s "%s"', (outcome, isSplit, failure) => {
    expect(failureOf({ outcome, isSplit })).toBe(failure);
  });
});

describe('stepAfter', () => {
  const quiet: Pause = {
    ...{ step: 'home', failure: 'refused', reason: undefined, hasOneKey: true },
    ...{ expiry: 9_000, poll: 750, isWide: false },
  };

  it.each<[string, Partial<Pause>, Step]>([
    ['a poll', {}, 'home'],
    ['a poll of all masters', { isWide: true }, 'all'],
    ['the expiry of the keys', { expiry: 500, isWide: true }, 'home'],
    ['a pause without a known expiry', { expiry: Infinity }, 'all'],
    ['a notification', { reason: 'next' }, 'reservation'],
    ['a notification for one of several keys', { reason: 'next', hasOneKey: false }, 'home'],
    ['another reason to wake', { reason: 'retry', isWide: true }, 'home'],
    ['a split vote', { failure: 'split', isWide: true }, 'home'],
    ['an attempt on all masters', { step: 'all', isWide: true }, 'home'],
  ])('after %s, contacts the right masters', (_, change, step) => {
    expect(stepAfter({ ...quiet, ...change })).toBe(step);
  });
});

const TTL = 20_000;

/** A process whose ttls are permitted up to a bound, and the times of its requests for permission. */
function asking(most: () => number) {
  const askedAt: number[] = [];
  const announceTtl = (ttl: number): number => {
    askedAt.push(rig.clock.now);
    return Math.min(ttl, most());
  };
  const rig: Rig = new Rig({ witness: { ...NO_WITNESS, announceTtl } });
  return { rig, askedAt };
}

describe('The ttl of a lock', () => {
  it('is announced again before each attempt of an acquisition that waits', async () => {
    const { rig, askedAt } = asking(() => TTL);
    await new Rig({}, rig).lock('a', { ttl: 29_000 });
    const acquired = rig.follow(rig.acquire('a', { ttl: TTL, wait: 60_000 }));
    await rig.clock.advance(40_000);
    expect(acquired.state).toBe('fulfilled');
    expect(acquired.at).toBeGreaterThan(TTL);
    expect(askedAt).toContain(acquired.at);
  });

  it('is cut if it could not be announced to the masters again', async () => {
    let most = TTL;
    const { rig } = asking(() => most);
    await new Rig({}, rig).lock('a', { ttl: 29_000 });
    const acquired = rig.follow(rig.acquire('a', { ttl: TTL, wait: 60_000 }));
    await rig.clock.advance(10_000);
    most = 1_000;
    await rig.clock.advance(20_000);
    const ttls = rig.masters[0]!.requests('acquire').map(({ ttl }) => ttl);
    expect(acquired.state).toBe('fulfilled');
    expect([ttls[1], ttls.at(-1)]).toEqual([TTL, 1_000]);
  });
});
