import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { LockService } from 'nestjs-redlock';
import { eventually } from '../../support/eventually.js';
import { ManualClock, memoryLockService, RedlockTestingModule } from 'nestjs-redlock/testing';

// A timer that has called back still says hasRef().
const pending = new Set<NodeJS.Timeout>();

/** Number of timers that keep this process alive now, without those of the test runner. Locks in memory need nothing else. */
const timers = (): number => [...pending].filter((timer) => timer.hasRef()).length;

const start = globalThis.setTimeout;

beforeAll(() => {
  jest.spyOn(globalThis, 'setTimeout').mockImplementation((callback: () => void, delay?: number) => {
    const timer = start(() => {
      pending.delete(timer);
      callback();
    }, delay);
    pending.add(timer);
    return timer;
  });
});
afterAll(() => {
  jest.restoreAllMocks();
});

describe('Locks in memory that a test leaves behind', () => {
  it('keep no process alive while they are held and extended', async () => {
    const before = timers();
    const module = await Test.createTestingModule({ imports: [RedlockTestingModule.forRoot()] }).compile();
    for (const locks of [module.get(LockService), memoryLockService()]) {
      await locks.acquire('a', { ttl: '10s', extend: true });
      await locks.acquire('b', { ttl: '10s', extend: false });
      void locks.withLock('c', () => new Promise(() => undefined));
    }
    // On a machine that stands still for seconds, extensions are under way, and each has a time limit.
    await expect(eventually(() => timers() === before)).resolves.toBeUndefined();
  });

  it('keep the process alive while a call waits for one, until the module closes', async () => {
    const module = await Test.createTestingModule({ imports: [RedlockTestingModule.forRoot()] }).compile();
    const before = timers();
    const locks = module.get(LockService);
    await locks.acquire('a', '10s');
    const waiting = locks.acquire('a', { wait: '30s' });
    await new Promise(setImmediate);
    expect(timers()).toBe(before + 1);
    await Promise.all([expect(waiting).rejects.toMatchObject({ code: 'LOCK_SERVICE_STOPPED' }), module.close()]);
    await new Promise(setImmediate);
    expect(timers()).toBe(before);
  });

  it('keep no process alive on a clock that the test moves, even while a call waits', async () => {
    const before = timers();
    const locks = memoryLockService({ clock: new ManualClock() });
    await locks.acquire('a', '10s');
    void locks.acquire('a', { wait: '30s' });
    await new Promise(setImmediate);
    expect(timers()).toBe(before);
  });
});
