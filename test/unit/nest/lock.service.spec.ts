import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it, jest } from '@jest/globals';
import {
  type Lock,
  type LockedMethodOptions,
  LockLostError,
  LockReentryError,
  RedlockConfigError,
  WithLock,
} from 'nestjs-redlock';
import { ManualClock, MemoryMaster, memoryLockService, withLocks } from 'nestjs-redlock/testing';
import type { Clock } from '../../../lib/core/clock.js';

describe('Work under a lock', () => {
  it.each([
    ['is extended for as long as it takes', {}, 'done'],
    ['is extended for as long as it takes if this is asked for', { extend: true }, 'done'],
    ['fails after the ttl if the lock may not be extended', { extend: false }, LockLostError],
  ])('%s', async (_, options, outcome) => {
    const clock = new ManualClock();
    const locks = memoryLockService({ clock });
    const work = async (): Promise<string> => {
      await new Promise<void>((resolve) => void clock.schedule(5_000, resolve));
      return 'done';
    };
    const worked = locks.withLock('a', { ttl: 1_000, ...options }, work).catch((error: unknown) => error);
    await clock.advance(5_000);
    const result = await worked;
    if (typeof outcome === 'string') expect(result).toBe(outcome);
    else expect(result).toBeInstanceOf(outcome);
  });
});

describe('Work inside a lock of its call chain', () => {
  const reentrant = { reentrant: true };

  it('begins after the call has returned, like work that acquires a lock', async () => {
    const locks = memoryLockService();
    const steps: string[] = [];
    await locks.withLock('a', async () => {
      const nested = locks.withLock('a', reentrant, () => steps.push('began'));
      steps.push('called');
      await nested;
    });
    expect(steps).toEqual(['called', 'began']);
  });

  it('may be nested far deeper than the stack', async () => {
    const locks = memoryLockService();
    const nest = (depth: number): Promise<number> =>
      locks.withLock('a', reentrant, async () => (depth === 0 ? 0 : 1 + (await nest(depth - 1))));
    expect(await nest(20_000)).toBe(20_000);
    expect(await locks.tryAcquire('a')).not.toBeNull();
  });
});

describe('Work inside a lock about which the masters resolve a doubt', () => {
  /** A machine whose wall clock is set forward; the masters are on others. */
  function machine() {
    const servers = new ManualClock();
    let ahead = 0;
    const clock: Clock = {
      read: () => ({ monotonic: servers.read().monotonic, wall: servers.read().wall + ahead }),
      schedule: (delay, callback) => servers.schedule(delay, callback),
      afterInput: (callback) => servers.afterInput(callback),
      afterTurn: (callback) => servers.afterTurn(callback),
    };
    const locks = memoryLockService({ clock, masters: [new MemoryMaster(servers)] });
    return { servers, locks, step: () => (ahead += 3_600_000) };
  }

  it('begins inside of that lock, once the doubt is resolved', async () => {
    const { servers, locks, step } = machine();
    const run = locks.withLock('a', { ttl: '10s' }, async (outer) => {
      step();
      return locks.withLock('a', { reentrant: true, wait: '5s' }, (inner) => inner === outer && inner.isHeld);
    });
    await servers.advance(1_000);
    expect(await run).toBe(true);
  });

  it('is refused at once if it may not run inside of that lock', async () => {
    const { servers, locks, step } = machine();
    const run = locks.withLock('a', { ttl: '10s' }, async () => {
      step();
      return locks.withLock('a', { wait: '5s' }, () => 'ran').catch((error: unknown) => error);
    });
    await servers.advance(1_000);
    expect(await run).toBeInstanceOf(LockReentryError);
  });
});

describe('Options of a call that have no prototype', () => {
  type Options = Omit<LockedMethodOptions, 'onLocked' | 'service'>;
  const bare = (options: object): Options => Object.assign(Object.create(null) as Options, options);

  /** Locks with the options, and returns how long the lock can be relied on. */
  async function decorated(options: Options): Promise<number> {
    const locks = memoryLockService({ clock: new ManualClock() });
    class Jobs {
      @WithLock('a', options)
      run(): Promise<number> {
        return Promise.resolve(locks.current('a')?.remaining() ?? 0);
      }
    }
    return withLocks(new Jobs(), locks).run();
  }
  const locks = memoryLockService({ clock: new ManualClock() });
  const remainingOf = async (lock: Lock | null): Promise<number> => {
    await using held = lock;
    return held?.remaining() ?? 0;
  };
  const CALLS: [string, (options: Options) => Promise<number>][] = [
    ['acquire', async (options) => remainingOf(await locks.acquire('a', options))],
    ['tryAcquire', async (options) => remainingOf(await locks.tryAcquire('a', options))],
    ['withLock', (options) => locks.withLock('a', options, (lock) => lock.remaining())],
    ['@WithLock', decorated],
  ];

  it.each(CALLS)('are read like any others: %s', async (_, call) => {
    expect(await call(bare({ ttl: 1_000, extend: false, mode: 'exclusive' }))).toBe(988);
    expect(await call(bare({}))).toBe(9_898);
  });

  it.each(CALLS)('are refused by name, like their values: %s', async (_, call) => {
    for (const options of [{ ttI: 1_000 }, { ttl: bare({}) }, { extend: bare({}) }, { mode: bare({}) }]) {
      const [name = ''] = Object.keys(options);
      await expect(call(bare(options))).rejects.toBeInstanceOf(RedlockConfigError);
      await expect(call(bare(options))).rejects.toThrow(name);
    }
  });
});

describe('A service whose application has shut down', () => {
  it('no longer follows the promises of the process', () => {
    const disable = jest.spyOn(AsyncLocalStorage.prototype, 'disable');
    memoryLockService().close();
    expect(disable).toHaveBeenCalledTimes(1);
    disable.mockRestore();
  });
});
