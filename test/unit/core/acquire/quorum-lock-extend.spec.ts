import { describe, expect, it } from '@jest/globals';
import { LockLostError, QuorumUnavailableError, RedlockConfigError } from '../../../../lib/core/errors.js';
import { NO_WITNESS } from '../../../../lib/core/witness.interface.js';
import { Rig } from '../../support/rig.js';
import { hangs, obeysInSilence, only, refused, says, tellsAfter, unreachable } from '../../support/scripted-master.js';

describe('extend()', () => {
  it('renews the lock from now, with the same ttl as before', async () => {
    const rig = new Rig();
    const lock = await rig.lock('a', { ttl: 1_000 });
    await rig.clock.advance(900);
    await lock.extend();
    expect(lock.remaining()).toBe(1_000 - 12);
    await rig.clock.advance(980);
    expect(lock.isHeld).toBe(true);
  });

  it('can lengthen the ttl, also for later extensions', async () => {
    const rig = new Rig();
    const lock = await rig.lock('a', { ttl: 900, extend: true });
    await lock.extend('9s');
    expect(lock.remaining()).toBe(9_000 - 92);
    await rig.clock.advance(3_000);
    expect(rig.masters[0]!.requests('extend').map(({ ttl }) => ttl)).toEqual([9_000, 9_000]);
  });

  it('can shorten the ttl', async () => {
    const rig = new Rig();
    const lock = await rig.lock('a', { ttl: 9_000 });
    await lock.extend(900);
    expect(lock.remaining()).toBe(900 - 11);
    await rig.clock.advance(900 - 11);
    expect(lock.signal.reason).toMatchObject({ cause: 'expired' });
    await rig.clock.advance(11);
    expect(rig.keys).toEqual([0, 0, 0]);
  });

  // Protocol 6.3
  it('to a shorter ttl shortens the validity even if the answers are lost', async () => {
    const rig = new Rig();
    const lock = await rig.lock('a', { ttl: 9_000 });
    rig.scriptAll(only('extend', obeysInSilence));
    const extended = rig.follow(lock.extend(900));
    expect(lock.remaining()).toBe(900 - 11);
    await rig.clock.advance(60);
    expect(extended.reason).toBeInstanceOf(QuorumUnavailableError);
    expect(lock.isHeld).toBe(true);
    await rig.clock.advance(900 - 11 - 60);
    expect(lock.isHeld).toBe(false);
    expect(rig.keys).toEqual([0, 0, 0]);
  });

  it('to a shorter ttl is made up for by the next extension if the answers are lost', async () => {
    const rig = new Rig();
    const lock = await rig.lock('a', { ttl: 9_000, extend: true });
    rig.scriptAll(only('extend', obeysInSilence));
    rig.follow(lock.extend(900));
    await rig.clock.advance(60);
    rig.scriptAll(tellsAfter(0));
    await rig.clock.advance(900);
    expect(lock.remaining()).toBeGreaterThan(8_000);
  });

  it('to a longer ttl that fails does not keep the lock from being extended in time', async () => {
    const rig = new Rig();
    const lock = await rig.lock('a', { ttl: 900, extend: true });
    rig.scriptAll(says(refused));
    await rig.clock.advance(200);
    const extended = rig.follow(lock.extend(30_000));
    await rig.clock.settle();
    expect(extended.reason).toBeInstanceOf(QuorumUnavailableError);
    rig.scriptAll(tellsAfter(0));
    await rig.clock.advance(5_000);
    expect(lock.isHeld).toBe(true);
  });

  it('that fails reports which masters did not agree, and leaves the rest of the validity', async () => {
    const rig = new Rig();
    const lock = await rig.lock('a', { ttl: 1_000 });
    rig.script(2, says(unreachable));
    await rig.clock.advance(100);
    const error = await lock.extend().catch((error: unknown) => error);
    expect(error).toBeInstanceOf(QuorumUnavailableError);
    expect(String(error)).toContain('cannot extend the lock: 2 of 3 masters must vote (m1: unreachable');
    expect(lock.remaining()).toBe(1_000 - 12 - 100);
  });

  it('rejects with the loss if the validity ends in the meantime', async () => {
    const rig = new Rig();
    const lock = await rig.lock('a', { ttl: 1_000 });
    rig.scriptAll(hangs);
    await rig.clock.advance(970);
    const extended = rig.follow(lock.extend());
    await rig.clock.advance(50);
    expect([extended.at, extended.reason]).toEqual([988, rig.losses[0]]);
    expect(rig.losses[0]).toMatchObject({ cause: 'expired' });
  });

  it('can be called many times at once: the rounds follow each other', async () => {
    const rig = new Rig();
    const lock = await rig.lock('a', { ttl: 1_000 });
    rig.scriptAll(tellsAfter(10));
    const all = [lock.extend(), lock.extend(2_000), lock.extend()].map((promise) => rig.follow(promise));
    await rig.clock.advance(100);
    expect(all.map(({ at }) => at)).toEqual([10, 20, 30]);
    expect(rig.masters[0]!.times('extend')).toEqual([0, 10, 20]);
  });

  it('can be called many times at once while the ttl is announced: the rounds follow each other', async () => {
    const reported = 5;
    const rig = new Rig({
      witness: {
        ...NO_WITNESS,
        announceTtl: (ttl) => new Promise((resolve) => rig.clock.schedule(reported, () => resolve(ttl))),
      },
    });
    const acquired = rig.follow(rig.acquire('a', { ttl: 1_000 }));
    await rig.clock.advance(reported);
    rig.scriptAll(tellsAfter(10));
    const all = [1, 2, 3].map(() => rig.follow(acquired.value!.extend()));
    await rig.clock.advance(100);
    expect(all.map(({ at }) => at)).toEqual([20, 30, 40]);
    expect(rig.masters[0]!.times('extend')).toEqual([10, 20, 30]);
  });

  it('after a release rejects, and sends no request', async () => {
    const rig = new Rig();
    const lock = await rig.lock('a');
    await lock.release();
    await expect(lock.extend()).rejects.toThrow(LockLostError);
    await expect(lock.extend()).rejects.toMatchObject({ cause: 'released' });
    expect(rig.masters[0]!.times('extend')).toEqual([]);
    expect(rig.losses).toEqual([]);
  });

  it.each([0, -1, NaN, 1.5, Infinity, 30_001, '10', null])('refuses a ttl of %p', async (ttl) => {
    const rig = new Rig();
    const lock = await rig.lock('a');
    await expect(lock.extend(ttl as number)).rejects.toThrow(RedlockConfigError);
    expect(lock.isHeld).toBe(true);
    expect(rig.masters[0]!.times('extend')).toEqual([]);
  });
});
