import { describe, expect, it } from '@jest/globals';
import type { LeasedKeys } from '../../../../lib/core/acquire/leased-keys.interface.js';
import { PendingReleases } from '../../../../lib/core/acquire/pending-releases.js';
import { QuorumLock } from '../../../../lib/core/acquire/quorum-lock.js';
import { Keyspace } from '../../../../lib/core/keyspace.js';
import { NO_WITNESS } from '../../../../lib/core/witness.interface.js';
import { CompositeLock } from '../../../../lib/core/acquire/composite-lock.js';
import { resolveSettings } from '../../../../lib/core/settings/settings.js';
import { MemoryMaster } from '../../../../lib/memory/memory-master.js';
import { TestClock } from '../../support/test-clock.js';

/** Quorum locks of one key each on the same masters. `earlier` are the largest tokens of the earlier holders of each key. */
async function rig(earlier: readonly number[]) {
  const clock = new TestClock();
  const settings = resolveSettings({});
  const masters = [1, 2, 3].map((i) => new MemoryMaster(clock, `m${i}`));
  const keyspace = new Keyspace('lock:');
  const context = {
    masters,
    keyspace,
    settings,
    clock,
    witness: NO_WITNESS,
    releases: new PendingReleases(),
    standstill: { total: 0 },
  };
  const set = new CompositeLock();
  const parts: LeasedKeys[] = [];
  for (const [i, token] of earlier.entries()) {
    const quorumLock = new QuorumLock(context, { resources: [`r${i}`], isShared: false, token: `secret ${i}` });
    await quorumLock.acquire({ ttl: 10_000, timeout: 50, since: clock.read(), waited: 0 });
    await quorumLock.drawToken(token + 1);
    parts.push(quorumLock);
    set.add(quorumLock);
  }
  return { clock, masters, keyspace, set, parts };
}

/** A part whose answers never change. */
function partWith({ token, remaining = 100, extended = true }: PartAnswers): LeasedKeys {
  const answer = { extended, quorumCall: { ownedByOther: false } };
  const part = {
    ...{ remaining, remainingAt: () => remaining },
    ...{ drawToken: () => Promise.resolve(token), extend: () => Promise.resolve(answer) },
  };
  return part as unknown as LeasedKeys;
}

interface PartAnswers {
  readonly token?: number | undefined;
  readonly remaining?: number;
  readonly extended?: boolean;
}

const LATER = Date.UTC(2001, 0, 1) * 1_000;

describe('A lock of several parts', () => {
  it('has one fencing token, larger than those of all earlier holders, on which every part agrees', async () => {
    for (const earlier of [
      [LATER, 0],
      [0, LATER],
    ]) {
      const { set, parts } = await rig(earlier);
      expect(await set.drawToken()).toBe(LATER + 1);
      for (const part of parts) expect(await part.drawToken()).toBe(LATER + 1);
    }
  });

  it('has no token without the agreement of every part', async () => {
    const { set, parts } = await rig([0, LATER]);
    await parts[0]!.release(0);
    expect(await set.drawToken()).toBeUndefined();
  });

  it('has no token if one part of a valid lock has none', async () => {
    const { set } = await rig([0]);
    set.add(partWith({ token: undefined }));
    expect(await set.drawToken()).toBeUndefined();
  });

  it('has no token once a part has ended', async () => {
    const set = new CompositeLock();
    set.add(partWith({ token: 7 }));
    expect(await set.drawToken()).toBe(7);
    set.add(partWith({ token: 7, remaining: 0 }));
    expect(await set.drawToken()).toBeUndefined();
  });

  it.each([
    ['first', [false, true]],
    ['last', [true, false]],
  ])('is not extended if the %s of its parts is not', async (_, parts) => {
    const set = new CompositeLock();
    for (const extended of parts) set.add(partWith({ extended }));
    expect((await set.extend(1_000)).extended).toBe(false);
  });

  it('lives as long as the part that ends first, and is extended as a whole or not', async () => {
    const { clock, masters, keyspace, set, parts } = await rig([0, 0]);
    await parts[1]!.extend(2_000);
    expect(set.remaining).toBe(2_000 - 22);
    await clock.advance(100);
    expect((await set.extend(5_000)).extended).toBe(true);
    expect(set.remaining).toBe(5_000 - 52);
    expect(set.validSince.monotonic).toBe(100);
    const { keys, queues } = keyspace.namesOf(['r1']);
    const stolen = { op: 'release', keys, queues, token: 'secret 1', keepFor: 0, ttl: 1 } as const;
    for (const master of masters) {
      master.ask(stolen, () => undefined);
      const request = { op: 'acquire', keys, token: 'other', ttl: 5_000 } as const;
      master.ask({ ...request, withdrawn: false }, () => undefined);
    }
    const { extended, quorumCall } = await set.extend(5_000);
    expect([extended, quorumCall.ownedByOther]).toEqual([false, true]);
    await set.release(0);
    expect(masters.map(({ size }) => size)).toEqual([1, 1, 1]);
  });
});
