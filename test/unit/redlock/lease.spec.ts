import { beforeEach, describe, expect, it } from '@jest/globals';
import { LockLostError } from '../../../lib/redlock/errors.js';
import { Rig } from '../support/rig.js';
import {
  granted,
  hangs,
  held,
  obeysAfter,
  obeysInSilence,
  only,
  refused,
  says,
  tellsAfter,
} from '../support/scripted-master.js';

let rig: Rig;

beforeEach(() => void (rig = new Rig()));

const TTL = 9_000;
/** Drift of that ttl: one per cent, and 2 ms. */
const DRIFT = 92;
const extended = { ttl: TTL, extend: true };

describe('A lock that is extended', () => {
  // Protocol 6.1
  it.each([TTL, 100])(
    'is extended first after a third of its ttl of %i ms, and again after each third',
    async (ttl) => {
      rig = new Rig({ ttl });
      await rig.lock('a', { extend: true });
      await rig.clock.advance(ttl * 4);
      const thirds = Array.from({ length: 12 }, (_, i) => (i + 1) * Math.floor(ttl / 3));
      expect(rig.masters.map((master) => master.times('extend'))).toEqual([thirds, thirds, thirds]);
      expect(rig.losses).toEqual([]);
    },
  );

  // Protocol 6.3
  it('counts the new validity from the start of the extension', async () => {
    const lock = await rig.lock('a', extended);
    rig.scriptAll(tellsAfter(40));
    await rig.clock.advance(3_040);
    expect(lock.remaining()).toBe(TTL - DRIFT - 40);
  });

  it('has one extension in flight at a time', async () => {
    rig = new Rig({ masterTimeout: 2_000 });
    const lock = await rig.lock('a', extended);
    rig.scriptAll(only('extend', hangs));
    await rig.clock.advance(3_000);
    const explicit = await rig.outcomeAfter(1_999, lock.extend());
    expect(rig.masters[0]!.times('extend')).toEqual([3_000]);
    rig.scriptAll(tellsAfter(0));
    await rig.clock.advance(1);
    expect([rig.masters[0]!.times('extend'), explicit.state]).toEqual([[3_000, 5_000], 'fulfilled']);
  });

  // Protocol 6.1
  it.each([
    [0, [3_000, 3_450, 3_900, 4_350]],
    [1, [3_000, 3_900]],
  ])(
    'is extended again a tenth of its ttl after an extension that failed, or half of it (%d)',
    async (chance, times) => {
      rig.fraction = chance;
      await rig.lock('a', extended);
      rig.scriptAll(only('extend', says(refused)));
      await rig.clock.advance(3_000 + 1_700);
      expect(rig.masters[0]!.times('extend')).toEqual(times);
    },
  );

  it('heals a master that was down during the acquisition', async () => {
    const { memory } = rig.masters[0]!;
    memory.takeDown();
    const lock = await rig.lock('a', extended);
    memory.bringUp();
    expect(rig.keys).toEqual([0, 1, 1]);
    await rig.clock.advance(3_000);
    expect(rig.keys).toEqual([1, 1, 1]);
    await lock.release();
    expect(rig.keys).toEqual([0, 0, 0]);
  });

  // Protocol 6.3
  it('is not extended, however many masters agree, if the answers arrive after the old validity', async () => {
    rig = new Rig({ masterTimeout: 2_000 });
    const lock = await rig.lock('a', extended);
    // Extensions are refused until shortly before the end; the last one is obeyed, but its answers are late.
    rig.scriptAll(only('extend', says(refused)));
    await rig.clock.advance(8_000);
    rig.scriptAll(only('extend', tellsAfter(1_500)));
    await rig.clock.advance(TTL - DRIFT - 8_000 - 1);
    expect(lock.isHeld).toBe(true);
    await rig.clock.advance(1);
    expect(lock.isHeld).toBe(false);
    expect(lock.signal.reason).toMatchObject({ cause: 'expired' });
    expect(rig.keys).toEqual([0, 0, 0]);
    await rig.clock.advance(5_000);
    expect([lock.isHeld, rig.losses.length, rig.clock.pendingTimers]).toEqual([false, 1, 0]);
  });

  it('is not extended by answers that waited in the socket while the process stalled', async () => {
    const lock = await rig.lock('a', extended);
    rig.scriptAll(only('extend', tellsAfter(10)));
    await rig.clock.advance(3_000);
    rig.clock.stall(7_000);
    await rig.clock.advance(0);
    expect([lock.isHeld, lock.remaining(), rig.losses.length]).toEqual([false, 0, 1]);
  });
});

describe('A lock that is lost', () => {
  // Protocol 6.4
  it('aborts exactly at the end of its validity when all masters hang', async () => {
    const lock = await rig.lock('a', extended);
    let abortedAt: number | undefined;
    lock.signal.addEventListener('abort', () => (abortedAt = rig.clock.now));
    rig.scriptAll(hangs);
    await rig.clock.advance(TTL - DRIFT - 1);
    expect(lock.isHeld).toBe(true);
    await rig.clock.advance(10_000);
    expect([abortedAt, lock.signal.reason]).toEqual([TTL - DRIFT, expect.any(LockLostError)]);
    expect(lock.signal.reason).toMatchObject({ cause: 'expired', resources: ['a'] });
    await rig.clock.advance(20_000);
    expect([rig.losses.length, rig.clock.pendingTimers]).toEqual([1, 0]);
  });

  it('ends exactly at the end of its validity without an extension, for good, and is released once', async () => {
    const lock = await rig.lock('a', { ttl: TTL });
    await rig.clock.advance(TTL - DRIFT - 1);
    expect(lock.isHeld).toBe(true);
    await rig.clock.advance(1);
    expect(lock.isHeld).toBe(false);
    // A signal that is read only afterwards is aborted, too.
    expect([lock.signal, lock.signal.aborted, lock.loss]).toEqual([lock.signal, true, rig.losses[0]]);
    expect(lock.signal.reason).toBe(rig.losses[0]);
    await expect(lock.extend()).rejects.toMatchObject({ cause: 'expired' });
    expect(() => lock.assertHeld()).toThrow(LockLostError);
    await lock.release();
    expect([rig.counts('extend'), rig.keys]).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ]);
    expect(rig.masters.map((master) => master.times('release'))).toEqual([[8_908], [8_908], [8_908]]);
  });

  it('aborts no later than the end of its validity, also if that is a fraction of a millisecond away', async () => {
    rig.scriptAll(tellsAfter(0.5));
    const acquired = await rig.outcomeAfter(0.5, rig.acquire('a', { ttl: TTL }));
    await rig.clock.advance(TTL - DRIFT - 0.5);
    expect(acquired.state).toBe('fulfilled');
    expect(rig.losses).toMatchObject([{ cause: 'expired' }]);
  });

  it('never relies on a fraction of a millisecond that a timer may miss', async () => {
    rig = new Rig({ driftFactor: 0.0111 });
    const lock = await rig.lock('a', { ttl: 1_000 });
    await rig.clock.advance(986);
    expect([lock.isHeld, lock.signal.aborted]).toEqual([false, true]);
  });

  // Protocol 6.4
  it('is reported when another holder has taken it on a quorum of masters, although it was still valid', async () => {
    const lock = await rig.lock('a', extended);
    rig.script(2, only('extend', says(held)));
    await rig.clock.advance(3_000);
    expect(lock.signal.reason).toMatchObject({ cause: 'owner-changed', code: 'LOCK_LOST', statusCode: 500 });
    expect(rig.losses[0]!.answers[0]).toEqual({ master: 'm1', answer: held });
  });

  it('is not lost to a minority of masters on which another holder has it', async () => {
    const lock = await rig.lock('a', extended);
    rig.script(1, only('extend', says(held)));
    await rig.clock.advance(30_000);
    expect(lock.isHeld).toBe(true);
  });

  it.each([
    ['released', 100, 'released'],
    ['lost', TTL - DRIFT, 'expired'],
  ])('does not go on requesting its fencing token once it is %s', async (_, ends, cause) => {
    const releases = only('release', says(granted));
    rig.scriptAll(only('acquire', says(granted), only('draw', says(refused), releases)));
    const lock = await rig.lock('a', { ttl: TTL });
    const asked = await rig.outcomeAfter(ends, lock.fencingToken());
    if (cause === 'released') await lock.release();
    await rig.clock.advance(0);
    // Neither the timer of the lock nor that of the pause between two attempts remains.
    expect(rig.clock.pendingTimers).toBe(0);
    expect(asked).toMatchObject({ at: ends, reason: { cause } });
  });
});

// Protocol 6.5
describe('maxHold', () => {
  it('is a loss with its own cause', async () => {
    const lock = await rig.lock('a', { ...extended, maxHold: 20_000 });
    await rig.clock.advance(19_999);
    expect([lock.isHeld, lock.remaining()]).toEqual([true, 1]);
    await rig.clock.advance(1);
    expect(lock.isHeld).toBe(false);
    expect(lock.signal.reason).toMatchObject({ cause: 'max-hold' });
    expect(rig.keys).toEqual([0, 0, 0]);
    await rig.clock.advance(30_000);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('is not exceeded by an explicit extension', async () => {
    const lock = await rig.lock('a', { ttl: TTL, maxHold: 10_000 });
    await rig.clock.advance(5_000);
    await lock.extend(20_000);
    expect(lock.remaining()).toBe(5_000);
  });
});

// Protocol 7.4
describe('minHold', () => {
  it.each([
    [TTL, 500, 1_500],
    [1_000, 500, 1_500],
    [TTL, 2_000, 0],
  ])('keeps the keys of a lock of %i ms that ends after %i ms for the rest: %i ms', async (ttl, ends, rest) => {
    const lock = await rig.lock('a', { ttl, minHold: 2_000 });
    await rig.clock.advance(ends);
    await lock.release();
    expect(lock.isHeld).toBe(false);
    expect(await rig.redlock.inspector.inspect('a')).toMatchObject({ remaining: rest });
    await rig.clock.advance(Math.max(rest - 1, 0));
    if (rest > 0) await expect(rig.acquire('a', { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
    await rig.clock.advance(1);
    expect((await rig.lock('a', { wait: 0 })).isHeld).toBe(true);
  });

  it('does not keep keys that were never acquired', async () => {
    rig.script(2, only('acquire', obeysAfter(60)));
    const lock = rig.follow(rig.acquire('a', { minHold: 5_000, wait: 0 }));
    rig.script(2, only('release', obeysInSilence, obeysAfter(60)));
    await rig.clock.advance(50);
    expect(lock.state).toBe('rejected');
    expect(rig.masters[2]!.requests('release')[0]!.keepFor).toBe(0);
  });
});
