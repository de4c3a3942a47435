import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it, jest } from '@jest/globals';
import { LockLostError } from 'nestjs-redlock';
import { ManualClock, memoryLockService } from 'nestjs-redlock/testing';

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

describe('A service whose application has shut down', () => {
  it('no longer follows the promises of the process', () => {
    const disable = jest.spyOn(AsyncLocalStorage.prototype, 'disable');
    memoryLockService().close();
    expect(disable).toHaveBeenCalledTimes(1);
    disable.mockRestore();
  });
});
