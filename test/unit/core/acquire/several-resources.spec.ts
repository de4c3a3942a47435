import { describe, expect, it } from '@jest/globals';
import { CompositeLock } from '../../../../lib/core/acquire/composite-lock.js';
import type { LeasedKeys } from '../../../../lib/core/acquire/leased-keys.js';
import { QuorumLock } from '../../../../lib/core/acquire/quorum-lock.js';
import { LockNotAcquiredError, LockServiceStoppedError } from '../../../../lib/core/errors.js';
import type { Lock } from '../../../../lib/core/lock.js';
import { NO_WITNESS, type Witness } from '../../../../lib/core/witness.interface.js';
import { MemoryMaster } from '../../../../lib/memory/memory-master.js';
import { quorumLockContext } from '../../support/quorum-lock-context.js';
import { Rig } from '../../support/rig.js';
import { TestClock } from '../../support/test-clock.js';

const SECTION = 20;

/** Milliseconds after which a waiter that is passed over takes the resources one by one. */
const PATIENCE = 1_000;

/** Processes that take `a` or `b` all the time, three for each. The two are never free at the same time. */
function busy() {
  const rig = new Rig();
  const turns: { readonly at: number; readonly resource: string }[] = [];
  let open = true;
  const pause = (delay: number): Promise<void> => new Promise((go) => void rig.clock.schedule(delay, go));
  const work = ['a', 'b', 'a', 'b', 'a', 'b'].map(async (resource) => {
    const single = rig.peer();
    while (open) {
      const lock = await single.acquire(resource, { wait: 600_000 });
      turns.push({ at: rig.clock.now, resource });
      await pause(SECTION);
      await lock.release();
    }
  });
  const end = async (): Promise<void> => {
    open = false;
    await rig.clock.advance(30_000);
    await Promise.all(work);
    expect([rig.keys, rig.queued, rig.clock.pendingTimers]).toEqual([[0, 0, 0], [0, 0, 0], 0]);
  };
  return { rig, pair: rig.peer(), turns, end };
}

/** A holder keeps `b` for long while `a` is busy, and a waiter for both is passed over. */
async function passedOver(options: { wait?: number; signal?: AbortSignal } = {}, witness: Partial<Witness> = {}) {
  const rig = new Rig();
  const pair = new Rig({ witness: { ...NO_WITNESS, ...witness } }, rig);
  const [left, right] = [rig.peer(), rig.peer()];
  const rightLock = await right.lock('b', { ttl: 10_000, extend: true });
  const leftLock = await left.lock('a', { ttl: 10_000 });
  const lock = await rig.outcomeAfter(PATIENCE, pair.acquire(['b', 'a'], { ttl: 3_000, wait: 60_000, ...options }));
  await leftLock.release();
  return { rig, pair, left, lock, rightLock };
}

/** As {@link passedOver}, and the waiter has begun to collect. */
async function collecting(options?: { wait?: number; signal?: AbortSignal }) {
  const scene = await passedOver(options);
  await scene.rig.clock.advance(10_000);
  return scene;
}

describe('A waiter for several resources', () => {
  // Protocol 4.9
  it('that is passed over for a second gets them after a few turns of the others', async () => {
    const { rig, pair, turns, end } = busy();
    await rig.clock.advance(500);
    const since = rig.clock.now;
    const lock = await rig.outcomeAfter(PATIENCE + 20 * SECTION, pair.acquire(['b', 'a'], { wait: 600_000 }));
    expect(lock.state).toBe('fulfilled');
    // Both were busy: it was passed over until it began to collect.
    expect(lock.at! - since).toBeGreaterThan(PATIENCE / 2);
    // One turn of each resource is in progress, and one more may be about to begin.
    const later = turns.filter(({ at }) => at > since + PATIENCE && at < lock.at!);
    expect(later.length).toBeLessThanOrEqual(6);
    await lock.value!.release();
    await end();
  });

  // Protocol 4.9
  it('keeps what it has while it waits for the rest, in sorted order', async () => {
    const { rig, left, lock, rightLock } = await collecting();
    expect(lock.state).toBe('pending');
    await expect(left.acquire('a', { wait: 0 })).rejects.toBeInstanceOf(LockNotAcquiredError);
    await rig.settle(rightLock.release());
    expect([lock.state, lock.value!.remaining(), lock.value!.resources]).toEqual(['fulfilled', 3_000 - 32, ['b', 'a']]);
    await lock.value!.release();
    expect(rig.keys).toEqual([0, 0, 0]);
  });

  it('holds a lock like any other afterwards: it is extended, and has one fencing token', async () => {
    const { rig, left, lock, rightLock } = await collecting();
    await rig.settle(rightLock.release());
    const pair = lock.value as Lock;
    const token = await pair.fencingToken();
    await rig.clock.advance(1_000);
    await pair.extend(8_000);
    expect(pair.remaining()).toBe(8_000 - 82);
    await pair.release();
    for (const resource of ['a', 'b']) {
      const next = await left.lock(resource);
      expect(await next.fencingToken()).toBeGreaterThan(token);
      await next.release();
    }
  });

  it('keeps to the shortest ttl that was permitted while it collected', async () => {
    let most = 3_000;
    const { rig, lock, rightLock } = await passedOver({}, { announceTtl: (ttl) => Math.min(ttl, most) });
    await rig.clock.advance(1_000);
    most = 1_000;
    await rig.clock.advance(10_000);
    await rig.settle(rightLock.release());
    expect([lock.state, lock.value!.remaining()]).toEqual(['fulfilled', 1_000 - 12]);
    most = 3_000;
    await lock.value!.extend();
    expect(lock.value!.remaining()).toBe(1_000 - 12);
    await lock.value!.release();
  });

  it('gives everything back at once when it is stopped while its ttl is announced a last time', async () => {
    let permits = Infinity;
    // As slow as a master that hangs makes it.
    const announceTtl = (ttl: number): number | Promise<number> =>
      --permits >= 0 ? ttl : new Promise(() => undefined);
    const { rig, pair, lock, rightLock } = await passedOver({}, { announceTtl });
    await rig.clock.advance(100);
    // One for the attempt on `b`.
    permits = 1;
    await rig.settle(rightLock.release());
    expect(rig.keys).toEqual([2, 2, 2]);
    pair.redlock.stop();
    await rig.clock.settle();
    expect([lock.reason, rig.keys]).toEqual([expect.any(LockServiceStoppedError), [0, 0, 0]]);
  });

  const enough = new Error('enough');

  it.each<[string, number, (pair: Rig, stop: AbortController) => void, object]>([
    ['its signal aborts', 60_000, (_, stop) => stop.abort(enough), { reason: enough }],
    ['it is stopped', 60_000, ({ redlock }) => redlock.stop(), { reason: expect.any(LockServiceStoppedError) }],
    ['its time is over', 12_000, () => undefined, { reason: { resources: ['b', 'a'], waited: 12_000 }, at: 12_000 }],
  ])('gives everything back when %s', async (_, wait, end, outcome) => {
    const stop = new AbortController();
    const { rig, pair, left, lock, rightLock } = await collecting({ wait, signal: stop.signal });
    end(pair, stop);
    await rig.clock.advance(wait === 12_000 ? 1_000 : 0);
    expect(lock).toMatchObject({ state: 'rejected', ...outcome });
    expect((await left.lock('a', { wait: 0 })).isHeld).toBe(true);
    await rightLock.release();
    await rig.clock.advance(0);
    expect(rig.queued).toEqual([0, 0, 0]);
  });
});

/** Quorum locks of one key each on the same masters. `earlier` are the largest tokens of the earlier holders of each key. */
async function rig(earlier: readonly number[]) {
  const clock = new TestClock();
  const masters = [1, 2, 3].map((i) => new MemoryMaster(clock, `m${i}`));
  const context = quorumLockContext(clock, masters);
  const { keyspace } = context;
  const set = new CompositeLock();
  const parts: LeasedKeys[] = [];
  for (const [i, token] of earlier.entries()) {
    const quorumLock = new QuorumLock(context, { resources: [`r${i}`], isShared: false, token: `secret ${i}` });
    await quorumLock.acquire({ ttl: 10_000, timeout: 50, since: clock.read(), stoodStill: 0, waited: 0 });
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

  it.each<PartAnswers>([{ token: undefined }, { token: 7, remaining: 0 }])(
    'has no token if a part has none, or once one has ended: %j',
    async (answers) => {
      const set = new CompositeLock();
      set.add(partWith({ token: 7 }));
      expect(await set.drawToken()).toBe(7);
      set.add(partWith(answers));
      expect(await set.drawToken()).toBeUndefined();
    },
  );

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
    expect([set.remaining, set.validSince.monotonic]).toEqual([5_000 - 52, 100]);
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
