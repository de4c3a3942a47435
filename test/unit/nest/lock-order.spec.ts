import { describe, expect, it } from '@jest/globals';
import {
  type Duration,
  LockNotAcquiredError,
  LockOrderError,
  type LockService,
  type WithLockOptions,
} from 'nestjs-redlock';
import { ManualClock, memoryLockService, memoryMasters } from 'nestjs-redlock/testing';
import { createRedlockRuntime } from '../../../lib/nest/redlock.runtime.js';
import { Chance } from '../../simulation/engine/chance.js';
import { type Chain, findHang, generateProgram, type Take, type Waiting, waitsOf } from '../support/lock-programs.js';
import { throwing } from '../../support/throwing.js';

const PERMITS = 2;

function optionsOf({ mode }: Take, wait: Duration): WithLockOptions {
  if (mode === 'permit') return { permits: PERMITS, wait };
  return { mode, wait };
}

/** Runs work inside of all locks of a chain. */
function within<T>(locks: LockService, chain: Chain, wait: Duration, work: () => Promise<T>): Promise<T> {
  const [first, ...others] = chain;
  if (!first) return work();
  return locks.withLock(first.resource, optionsOf(first, wait), () => within(locks, others, wait, work));
}

interface Stage {
  readonly clock: ManualClock;
  readonly locks: LockService;
  /** Of another process. */
  readonly others: LockService;
}

function stage(): Stage {
  const clock = new ManualClock();
  const masters = memoryMasters(3, clock);
  const process = (): LockService => memoryLockService({ clock, masters, lockOrder: 'off' });
  return { clock, locks: process(), others: process() };
}

/** What other processes do at worst: wait for each shared lock alone, and have all other permits. */
async function disturb({ clock, others }: Stage, set: readonly Waiting[]): Promise<void> {
  for (const { wanted } of set) {
    if (wanted.mode === 'shared')
      others.withLock(wanted.resource, { wait: '5s' }, () => 'wrote').catch(() => undefined);
    if (wanted.mode === 'permit') await others.tryAcquire(wanted.resource, { permits: PERMITS, ttl: '20s' });
  }
  await clock.advance(1);
}

/** How many of the calls wait until their budgets end. */
async function hanging(here: Stage, set: readonly Waiting[]): Promise<number> {
  const { clock, locks } = here;
  const calls = set.map(({ held, wanted }) =>
    within(locks, held, '1ms', async () => {
      await new Promise<void>((resolve) => void clock.schedule(10, () => resolve()));
      return locks.withLock(wanted.resource, optionsOf(wanted, '2s'), () => 'ran');
    }).catch((error: unknown) => error),
  );
  await clock.advance(1);
  await disturb(here, set);
  await clock.advance(10_000);
  return (await Promise.all(calls)).filter((outcome) => outcome instanceof LockNotAcquiredError).length;
}

describe('On masters in memory', () => {
  const programs = Array.from({ length: 60 }, (_, seed) => {
    const chains = generateProgram(new Chance(seed), seed % 2 === 0);
    return { chains, hang: findHang(chains.flat().flatMap(waitsOf)) };
  });

  it('chains that the reference takes for hanging wait until a budget ends', async () => {
    const hangs = programs.flatMap(({ hang }) => (hang ? [hang] : []));
    expect(hangs.length).toBeGreaterThan(20);
    for (const hang of hangs) {
      const count = await hanging(stage(), hang);
      expect({ hang, isHanging: count > 0 }).toEqual({ hang, isHanging: true });
    }
  });

  it('programs that the reference takes for safe run to their ends, whatever happens when', async () => {
    const safe = programs.filter(({ hang }) => !hang);
    expect(safe.length).toBeGreaterThan(10);
    for (const [seed, { chains }] of safe.entries()) {
      const { clock, locks } = stage();
      const chance = new Chance(seed, 1);
      const pause = (): Promise<void> =>
        new Promise((resolve) => void clock.schedule(chance.whole(0, 3), () => resolve()));
      const calls = Array.from({ length: 8 }, async () => {
        await pause();
        return within(locks, chance.pick(chance.pick(chains)), '10s', pause).then(() => 'ran');
      });
      await clock.advance(9_000);
      expect(await Promise.all(calls)).toEqual(calls.map(() => 'ran'));
    }
  });
});

describe('Watching the order of locks', () => {
  const refusing = (): LockService => memoryLockService({ lockOrder: 'error' });
  const ran = (): Promise<string> => Promise.resolve('ran');
  const deep: Chain = Array.from('cdefghij', (resource) => ({ resource, mode: 'exclusive' }));
  const silent = { log: () => undefined, warn: () => undefined, error: () => undefined };
  /** Takes the second lock inside of the first one. */
  const nest = (locks: LockService, outer: string, inner: string, options: WithLockOptions = {}): Promise<string> =>
    locks.withLock(outer, () => locks.withLock(inner, options, ran));

  it('refuses the call before it waits, with the locks that it asked for', async () => {
    const locks = refusing();
    expect(await nest(locks, 'a', 'b')).toBe('ran');
    const error: unknown = await nest(locks, 'b', 'a').catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LockOrderError);
    expect(error).toMatchObject({ code: 'LOCK_ORDER', statusCode: 500, resources: ['a'] });
    // Nothing was taken.
    expect(await nest(locks, 'a', 'b')).toBe('ran');
  });

  it('refuses an acquisition by hand, too', async () => {
    const locks = refusing();
    await nest(locks, 'a', 'b');
    await locks.withLock('b', () => expect(locks.acquire('a')).rejects.toThrow(LockOrderError));
  });

  it.each<[string, (locks: LockService) => Promise<unknown>]>([
    ['does not wait', (locks) => nest(locks, 'b', 'a', { wait: 0 })],
    ['makes one attempt', (locks) => locks.withLock('b', async () => (await locks.tryAcquire('a'))?.release())],
    ['joins a lock', (locks) => locks.withLock(['a', 'b'], () => locks.withLock('a', { reentrant: true }, ran))],
    [
      'comes after a release',
      (locks) => locks.withLock('b', (lock) => lock.release().then(() => locks.withLock('a', ran))),
    ],
    ['was aborted before', (locks) => nest(locks, 'b', 'a', { signal: AbortSignal.abort('enough') }).catch(String)],
    ['is nested more than eight deep', (locks) => within(locks, deep, '1s', () => nest(locks, 'b', 'a'))],
    ['takes several at once', (locks) => locks.withLock(['b', 'a'], ran)],
  ])('takes no notice of a call that %s', async (_, call) => {
    const locks = refusing();
    await nest(locks, 'a', 'b');
    await expect(call(locks)).resolves.not.toThrow();
  });

  it('takes no notice of calls that `enabled: false` runs without locks', async () => {
    const { service } = await createRedlockRuntime({ enabled: false, lockOrder: 'error' }, silent);
    await nest(service, 'a', 'b');
    await expect(nest(service, 'b', 'a')).resolves.toBe('ran');
  });

  it('does not fail a call because of a logger that throws', async () => {
    const warn = throwing(new Error('the disk is full'));
    const { service } = await createRedlockRuntime({ masters: 'memory' }, { ...silent, warn });
    await nest(service, 'a', 'b');
    await expect(nest(service, 'b', 'a')).resolves.toBe('ran');
  });

  it('knows that an outer lock does not keep branches of one hold apart', async () => {
    const locks = refusing();
    const both = (run: (calls: (() => Promise<string>)[]) => Promise<unknown>): Promise<unknown> =>
      locks.withLock('outer', () => run([() => nest(locks, 'a', 'b'), () => nest(locks, 'b', 'a', { wait: '50ms' })]));
    // One after the other.
    await both(async ([first, second]) => [await first!(), await second!()]);
    // Also after a branch has ended.
    await both(async ([first, second]) => [await first!(), await second!()]);
    await expect(both((calls) => Promise.all(calls.map((call) => call())))).rejects.toThrow(LockOrderError);
  });
});
