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

describe('A service whose application has shut down', () => {
  it('no longer follows the promises of the process', () => {
    const disable = jest.spyOn(AsyncLocalStorage.prototype, 'disable');
    memoryLockService().close();
    expect(disable).toHaveBeenCalledTimes(1);
    disable.mockRestore();
  });
});
