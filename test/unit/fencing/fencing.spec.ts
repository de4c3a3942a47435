import { beforeEach, describe, expect, it } from '@jest/globals';
import { LockLostError } from '../../../lib/redlock/errors.js';
import { countersOf, TokenAgreement } from '../../../lib/fencing/fencing-token.js';
import { GRANTED, type Master } from '../../../lib/masters/master.interface.js';
import { TIMED_OUT } from '../../../lib/redlock/server.js';
import { acquiring, drawing } from '../../support/ask.js';
import { Rig } from '../support/rig.js';
import { cutOff, obeysAfter, obeysInSilence, only } from '../support/scripted-master.js';

let rig: Rig;

beforeEach(() => void (rig = new Rig()));

const HOUR = 3_600_000;

describe('TokenAgreement', () => {
  let agreement: TokenAgreement;
  let a: ReturnType<typeof master>;
  /** Whether a request that sets its keys is on its way. */
  let isOpen: boolean;
  /** How often its keys were set again. */
  let heals: number;

  beforeEach(() => {
    isOpen = false;
    heals = 0;
    const [timesSetAgain, mayBeSet] = [() => heals, () => isOpen];
    agreement = new TokenAgreement(2, { keys: ['k'], token: 'secret', timesSetAgain, mayBeSet });
    a = master();
  });

  // Protocol 9.3
  it.each([
    ['two equal answers', [[7, 7]], 7],
    ['two different answers', [[7, 8]], undefined],
    ['a quorum of three', [[9, 7, 9]], 9],
    ['a single answer', [[8]], undefined],
    ['one answer in each of two rounds', [[8], [8]], undefined],
    [
      'two different answers, and then the larger one twice',
      [
        [7, 8],
        [8, 8],
      ],
      8,
    ],
    [
      'an even larger answer in the second round',
      [
        [7, 8],
        [8, 9],
      ],
      undefined,
    ],
    ['answers that are smaller than one seen before', [[9], [8, 8]], undefined],
    ['no answer', [[]], undefined],
  ])('draws the right conclusion from %s', (_, rounds, token) => {
    for (const answers of rounds) agreement.conclude(answers);
    expect(agreement.agreed).toBe(token);
  });

  it('spreads all keys over a bounded number of counters', () => {
    const counters = new Set(Array.from({ length: 20_000 }, (_, i) => countersOf([`k${i}`])[0]));
    expect(counters.size).toBeLessThanOrEqual(4_096);
    expect(counters.size).toBeGreaterThan(4_000);
  });

  it('lets a master draw once, and then repeat the largest number, unless it runs anew', () => {
    const b = master();
    const first = agreement.drawFrom(a, 5);
    expect(first.request).toMatchObject({ op: 'draw', keys: ['k'], token: 'secret', isFirst: true, atLeast: 0 });
    expect(first.request.since).toBe(5);
    first.judge({ ...GRANTED, fence: 120 });
    agreement.conclude([120]);
    expect(agreement.drawFrom(a, 5).request).toMatchObject({ isFirst: false, atLeast: 120 });
    expect(agreement.drawFrom(b, 5).request).toMatchObject({ isFirst: true, atLeast: 120 });
    a.run = 'other';
    expect(agreement.drawFrom(a, 5).request.isFirst).toBe(true);
  });

  it.each([
    ['was lost', TIMED_OUT],
    ['was cut off', cutOff],
    ['came from a quarantined master', { kind: 'quarantined', reason: 'young', remaining: 1 }],
  ] as const)('lets a master draw again if its answer %s', (_, answer) => {
    agreement.drawFrom(a, 1).judge(answer);
    expect(agreement.drawFrom(a, 1).request.isFirst).toBe(true);
  });

  // Protocol 9.2
  it('lets a master draw again whose keys were set again', () => {
    agreement.drawFrom(a, 1).judge(GRANTED);
    expect(agreement.drawFrom(a, 1).request.isFirst).toBe(false);
    heals++;
    expect(agreement.drawFrom(a, 1).request.isFirst).toBe(true);
  });

  it('does not count a draw that was sent before its keys were set again or to another run', () => {
    const [before, other] = [agreement.drawFrom(a, 1), agreement.drawFrom(a, 1)];
    a.run = 'other';
    expect(before.judge(GRANTED)).toEqual(TIMED_OUT);
    a.run = 'run';
    heals++;
    expect(other.judge(GRANTED)).toEqual(TIMED_OUT);
    expect(agreement.drawFrom(a, 1).request.isFirst).toBe(true);
  });

  it('does not count the draw of a master whose keys may still be set by an earlier request', () => {
    isOpen = true;
    expect(agreement.drawFrom(a, 1).judge(GRANTED)).toEqual(TIMED_OUT);
    isOpen = false;
    expect(agreement.drawFrom(a, 1).judge(GRANTED)).toEqual(GRANTED);
  });

  function master(): Master & { run: string } {
    const known = { run: 'run', identity: () => ({ run: known.run }) };
    return known as unknown as Master & { run: string };
  }
});

describe('A fencing token', () => {
  // Protocol 9.1
  it('costs nothing until it is requested, and is not available after a release', async () => {
    const lock = await rig.lock('a', { ttl: 1_000, extend: true });
    await rig.clock.advance(2_000);
    await lock.release();
    await expect(lock.fencingToken()).rejects.toThrow(LockLostError);
    expect(rig.masters.flatMap((master) => master.requests('draw'))).toEqual([]);
  });

  it('is a positive safe integer that takes one round, and only the first time', async () => {
    const lock = await rig.lock('a');
    const [token, same] = await Promise.all([lock.fencingToken(), lock.fencingToken()]);
    expect(Number.isSafeInteger(token)).toBe(true);
    expect(token).toBeGreaterThan(0);
    expect([same, await lock.fencingToken()]).toEqual([token, token]);
    expect(rig.counts('draw')).toEqual([1, 1, 1]);
  });

  // Protocol 9.4
  it.each<[string, () => unknown]>([
    ['no time passes', () => undefined],
    ['the clocks of the masters are set back by an hour', () => rig.clock.stepWall(-HOUR)],
    ['all masters lost their counters', () => (flushAll(), rig.clock.advance(1))],
  ])('is larger than that of the previous lock, even if %s', async (_, happens) => {
    const token = await tokenOf('a');
    await happens();
    expect(await tokenOf('a', rig.peer())).toBeGreaterThan(token);
  });

  // Protocol 9.4
  it('is not drawn from masters whose clocks are beyond the year 2200', async () => {
    rig.clock.stepWall(Date.UTC(2200, 0, 1) + 1 - rig.clock.read().wall);
    const lock = await rig.lock('a', { ttl: 1_000 });
    const asked = await rig.outcomeAfter(500, lock.fencingToken());
    expect(asked.state).toBe('pending');
    rig.clock.stepWall(-600);
    await rig.clock.advance(400);
    expect(asked.value).toBeLessThan(Date.UTC(2200, 0, 1) * 1_000);
    expect(asked.value).toBeGreaterThan((Date.UTC(2200, 0, 1) - 1_000) * 1_000);
  });

  // Protocol 9.6
  it('is one number for several keys, larger than that of each key, and all their counters know it', async () => {
    rig.clock.stepWall(60_000);
    const token = await tokenOf('b');
    rig.clock.stepWall(-60_000);
    const larger = await tokenOf(['a', 'b']);
    expect(larger).toBeGreaterThan(token);
    for (const key of ['a', 'b']) expect(await tokenOf(key)).toBeGreaterThan(larger);
  });

  it('takes another round if masters differ, and adopts the largest number', async () => {
    await ahead(rig, 2);
    const lock = await rig.lock('a');
    const token = await lock.fencingToken();
    expect(rig.masters[0]!.requests('draw').map(({ isFirst }) => isFirst)).toEqual([true, false]);
    await lock.release();
    expect(await tokenOf('a')).toBeGreaterThan(token);
  });

  // Protocol 9.5
  it('stays the same when a master that lost its data gets its key again, and later tokens are larger', async () => {
    const lock = await rig.lock('a', { ttl: 1_000, extend: true });
    const token = await lock.fencingToken();
    rig.masters[0]!.memory.flush();
    await rig.clock.advance(400);
    expect(rig.keys).toEqual([1, 1, 1]);
    expect(await lock.fencingToken()).toBe(token);
    await lock.release();
    expect(await tokenOf('a')).toBeGreaterThan(token);
  });

  it('is drawn anew by a master whose key was set again', async () => {
    const lock = await rig.lock('a', { ttl: 10_000 });
    // Only the first master answers the first round, so its number is no token.
    for (const master of rig.masters.slice(1)) master.behaviour = only('draw', obeysInSilence);
    const asked = await rig.outcomeAfter(60, lock.fencingToken());
    expect(asked.state).toBe('pending');
    rig.masters[0]!.memory.flush();
    await lock.extend();
    rig.forget();
    rig.scriptAll(obeysAfter(0));
    await rig.clock.advance(2_000);
    expect(asked.state).toBe('fulfilled');
    expect(rig.masters[0]!.requests('draw')[0]).toMatchObject({ isFirst: true });
  });

  it('is requested again after a failed round', async () => {
    const lock = await rig.lock('a', { ttl: 5_000 });
    rig.scriptAll(only('draw', obeysAfter(70)));
    const asked = await rig.outcomeAfter(60, lock.fencingToken());
    expect(asked.state).toBe('pending');
    rig.scriptAll(obeysAfter(1));
    await rig.clock.advance(1_000);
    expect(asked.state).toBe('fulfilled');
  });
});

/** The token of a lock that is released at once. */
async function tokenOf(resources: string | string[], by = rig): Promise<number> {
  const lock = await by.lock(resources);
  const token = await lock.fencingToken();
  await lock.release();
  return token;
}

function flushAll(): void {
  for (const { memory } of rig.masters) memory.flush();
}

/** Makes the counters of the first `count` masters differ from each other. */
async function ahead(rig: Rig, count: number): Promise<void> {
  const keys = ['lock:a'];
  for (const [i, { memory }] of rig.masters.slice(0, count).entries()) {
    const atLeast = rig.clock.read().wall * 1_000 + HOUR * 1_000 * (i + 1);
    memory.ask(acquiring(keys, 'x', { ttl: 1 }), () => undefined);
    memory.ask(drawing(keys, 'x', { atLeast }), () => undefined);
  }
  await rig.clock.advance(2);
}
