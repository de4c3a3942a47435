import 'reflect-metadata';
import { defaultMaxListeners, getEventListeners } from 'node:events';
import { afterEach, expect, it, jest } from '@jest/globals';
import { Injectable, type Type } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { LockedInterval, RedlockScheduleModule } from 'nestjs-redlock/schedule';
import { ManualClock } from 'nestjs-redlock/testing';
import { boot, closeAll } from './support/applications.js';
import { Locks } from './support/locks.js';

const JOBS = 200;
const MINUTE = 60_000;

afterEach(async () => {
  jest.restoreAllMocks();
  await closeAll();
});

/** A class with one job. */
function jobOf(name: string, ran: string[]): Type {
  @Injectable()
  class Jobs {
    @LockedInterval('1m', { name })
    async run(): Promise<void> {
      ran.push(name);
      await Promise.resolve();
    }
  }
  return Jobs;
}

it('Hundreds of jobs leave no signal with more listeners than Node takes for a leak', async () => {
  const signals = new Set<EventTarget>();
  let most = 0;
  const { value: listen } = Object.getOwnPropertyDescriptor(EventTarget.prototype, 'addEventListener') as {
    readonly value: EventTarget['addEventListener'];
  };
  jest.spyOn(EventTarget.prototype, 'addEventListener').mockImplementation(function (this: EventTarget, ...args) {
    Reflect.apply(listen, this, args);
    signals.add(this);
    most = Math.max(most, getEventListeners(this, args[0]).length);
  });
  const clock = new ManualClock(Date.UTC(2026, 0, 1, 0, 0, 30));
  const locks = new Locks(3, { clock, drainTimeout: 0 });
  const ran: string[] = [];
  for (const instance of ['a', 'b']) {
    const providers = Array.from({ length: JOBS }, (_, index) => jobOf(`job${index}`, ran));
    await boot({ imports: [locks.module({ instance }), ScheduleModule.forRoot(), RedlockScheduleModule], providers });
    await clock.settle();
  }
  await clock.advance(2 * MINUTE);
  expect(ran).toHaveLength(2 * JOBS);
  expect(signals.size).toBeGreaterThan(JOBS);
  expect(most).toBeLessThanOrEqual(defaultMaxListeners);
}, 60_000);
