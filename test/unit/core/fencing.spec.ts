import { describe, expect, it } from '@jest/globals';
import { fc } from '../../support/properties.js';
import { LockLostError, RedlockConfigError } from '../../../lib/core/errors.js';
import { agree, countersOf } from '../../../lib/core/fencing.js';
import { Rig } from '../support/rig.js';
import { hangs, obeysAfter, only } from '../support/scripted-master.js';

describe('agreement on a token', () => {
  it.each([
    [0, [7, 7], 2, { token: 7, agreed: true }],
    [0, [7, 8], 2, { token: 8, agreed: false }],
    [0, [9, 7, 9], 2, { token: 9, agreed: true }],
    [8, [8], 2, { token: 8, agreed: false }],
    [8, [8, 8], 2, { token: 8, agreed: true }],
    [8, [8, 9], 2, { token: 9, agreed: false }],
    [8, [], 1, { token: 8, agreed: false }],
  ])('from %i, answers %j, quorum %i', (token, answers, quorum, state) => {
    expect(agree(token, answers, quorum)).toEqual(state);
  });

  it('draws all keys from a bounded number of counters', () => {
    const fields = new Set(Array.from({ length: 20_000 }, (_, i) => countersOf([`k${i}`]).fields[0]));
    expect(fields.size).toBeLessThanOrEqual(4_096);
    expect(fields.size).toBeGreaterThan(4_000);
  });
});

describe('a fencing token', () => {
  it('is a positive safe integer that was agreed on together with the lock', async () => {
    const rig = new Rig();
    const lock = await rig.lock('a');
    const token = await lock.fencingToken();
    expect(Number.isSafeInteger(token)).toBe(true);
    expect(token).toBeGreaterThan(0);
    expect(rig.masters.flatMap((master) => master.requests('confirm'))).toEqual([]);
    expect(await lock.fencingToken()).toBe(token);
  });

  it('is larger for every later lock, though no time passes', async () => {
    const rig = new Rig();
    let last = 0;
    for (let i = 0; i < 20; i++) {
      const lock = await rig.lock('a');
      const token = await lock.fencingToken();
      expect(token).toBeGreaterThan(last);
      last = token;
      await lock.release();
    }
  });

  it('is larger than that of the lock before, though the clock of its client is an hour behind', async () => {
    const rig = new Rig();
    const first = await rig.lock('a');
    const token = await first.fencingToken();
    await first.release();
    rig.clock.stepWall(-3_600_000);
    const second = await rig.lock('a');
    expect(await second.fencingToken()).toBeGreaterThan(token);
  });

  it('is larger than that of each key, for several keys', async () => {
    const rig = new Rig();
    rig.clock.stepWall(60_000);
    const ahead = await rig.lock('b');
    const token = await ahead.fencingToken();
    await ahead.release();
    rig.clock.stepWall(-60_000);
    const both = await rig.lock(['a', 'b']);
    const larger = await both.fencingToken();
    expect(larger).toBeGreaterThan(token);
    await both.release();
    expect(await (await rig.lock('a')).fencingToken()).toBeGreaterThan(larger);
  });

  it('takes another round when masters differ, and adopts the largest', async () => {
    const rig = new Rig();
    await ahead(rig, 2);
    const lock = await rig.lock('a');
    const token = await lock.fencingToken();
    expect(rig.masters[0]!.requests('confirm').length).toBeGreaterThan(0);
    await lock.release();
    expect(await (await rig.lock('a')).fencingToken()).toBeGreaterThan(token);
  });

  it('takes no longer than its rounds do when a master with a larger counter turns up late', async () => {
    const rig = new Rig();
    await ahead(rig, 3);
    // The one that is furthest ahead is not waited for; the confirming round meets it.
    rig.masters[2]!.behaviour = obeysAfter(5);
    const lock = await rig.lock('a');
    rig.masters[0]!.behaviour = obeysAfter(10);
    rig.masters[2]!.behaviour = obeysAfter(0);
    await rig.clock.advance(5);
    const asked = rig.follow(lock.fencingToken());
    await rig.clock.advance(30);
    expect(asked.state).toBe('fulfilled');
    expect(rig.masters[1]!.requests('confirm').length).toBe(2);
  });

  it('is not confirmed by a master whose key is no longer ours', async () => {
    const rig = new Rig();
    await ahead(rig, 2);
    const lock = await rig.lock('a');
    for (const { memory } of rig.masters) memory.flush();
    const other = await new Rig({}, rig).lock('a');
    const asked = rig.follow(lock.fencingToken());
    await rig.clock.advance(10_000);
    expect(asked.reason).toBeInstanceOf(LockLostError);
    expect(await other.fencingToken().catch(() => 0)).toBeGreaterThanOrEqual(0);
  });

  it('is not given when the agreement comes after the end of the validity', async () => {
    const rig = new Rig();
    await ahead(rig, 2);
    const lock = await rig.lock('a', { ttl: 1_000 });
    rig.scriptAll(only('confirm', hangs));
    const asked = rig.follow(lock.fencingToken());
    await rig.clock.advance(2_000);
    expect(asked.reason).toBeInstanceOf(LockLostError);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('is asked for again when a round failed', async () => {
    const rig = new Rig();
    await ahead(rig, 2);
    const lock = await rig.lock('a', { ttl: 5_000 });
    rig.scriptAll(only('confirm', obeysAfter(70)));
    const asked = rig.follow(lock.fencingToken());
    await rig.clock.advance(200);
    expect(asked.state).toBe('pending');
    rig.scriptAll(obeysAfter(1));
    await rig.clock.advance(1_000);
    expect(asked.state).toBe('fulfilled');
  });

  it('survives an extension that heals a master which lost its data', async () => {
    const rig = new Rig();
    const lock = await rig.lock('a', { ttl: 1_000, extend: true });
    const token = await lock.fencingToken();
    rig.masters[0]!.memory.flush();
    rig.masters[1]!.memory.flush();
    await rig.clock.advance(400);
    rig.clock.stepWall(-60_000);
    await lock.release();
    expect(await (await rig.lock('a')).fencingToken()).toBeGreaterThan(token);
  });

  it('does not exist after a release, nor without fencing', async () => {
    const rig = new Rig({ fencing: false });
    const lock = await rig.lock('a');
    await expect(lock.fencingToken()).rejects.toThrow(RedlockConfigError);
    await lock.release();
    await expect(lock.fencingToken()).rejects.toThrow(LockLostError);
  });

  it('is unique and grows in the order of the locks, whatever masters and clocks do', async () => {
    const fault = fc.record({ slow: fc.nat(2), delay: fc.nat(60), step: fc.integer({ min: -5_000, max: 5_000 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(fault, { minLength: 3, maxLength: 12 }), async (faults) => {
        const rig = new Rig({ masters: 3 });
        let last = 0;
        for (const { slow, delay, step } of faults) {
          rig.clock.stepWall(step);
          rig.scriptAll(obeysAfter(0));
          rig.masters[slow]!.behaviour = obeysAfter(delay);
          const acquiring = rig.follow(rig.acquire('a', { wait: 60_000 }));
          await rig.clock.advance(500);
          const lock = acquiring.value!;
          const asked = rig.follow(lock.fencingToken());
          await rig.clock.advance(500);
          const token = asked.value!;
          expect(token).toBeGreaterThan(last);
          last = token;
          void lock.release();
          await rig.clock.advance(200);
        }
      }),
      { numRuns: 25 },
    );
  });
});

/** Lets the counters of the first so many masters differ, each in its own way. */
async function ahead(rig: Rig, count: number): Promise<void> {
  for (const [i, master] of rig.masters.slice(0, count).entries()) {
    const counters = countersOf(['lock:a']);
    const floor = rig.clock.read().wall * 1_000 + 1_000 * (i + 1);
    const request = { op: 'acquire', keys: ['lock:a'], token: 'x', ttl: 1, explain: false, withdrawn: false } as const;
    master.memory.ask({ ...request, fence: { ...counters, floor } }, () => undefined);
  }
  await rig.clock.advance(2);
}
