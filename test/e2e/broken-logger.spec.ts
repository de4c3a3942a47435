import { afterEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { type LockObserver, LockService, type RedlockModuleOptions } from 'nestjs-redlock';
import { ManualClock } from 'nestjs-redlock/testing';
import { boot, closeAll } from './support/applications.js';
import { Locks } from './support/locks.js';

const broken = (): never => {
  throw new Error('the log is full');
};

describe('A logger that throws', () => {
  afterEach(async () => {
    Logger.overrideLogger(false);
    await closeAll();
  });

  const observer: LockObserver = { lockLost: broken };

  it.each<[string, Partial<RedlockModuleOptions>]>([
    ['without observers', {}],
    ['beside an observer that throws', { observers: [observer] }],
    ['while locking is disabled', { enabled: false }],
  ])('disturbs neither the timer that notices a loss nor the lock, %s', async (_, options) => {
    const clock = new ManualClock();
    const locks = new Locks(3, { clock });
    const app = await boot({ imports: [locks.module(options)] });
    Logger.overrideLogger({ log: broken, warn: broken, error: broken });
    const lock = await app.get(LockService).acquire('a', '10s');
    // Runs the callbacks of timers, so an error in a callback is thrown here.
    await clock.advance(10_000);
    expect(lock.loss).toMatchObject({ cause: 'expired' });
    expect(lock.signal.aborted).toBe(true);
  });
});
