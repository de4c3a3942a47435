// The wall clock of a process moves alone: until the masters have answered, it is uncertain whether a lock has lasted.
import 'reflect-metadata';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Injectable, UseInterceptors } from '@nestjs/common';
import { CronExpression, ScheduleModule } from '@nestjs/schedule';
import { LockInterceptor, LockLostError, LockService, RedlockModule, WithLock } from 'nestjs-redlock';
import { LockedCron, RedlockScheduleModule } from 'nestjs-redlock/schedule';
import { ManualClock, memoryLockService, memoryMasters } from 'nestjs-redlock/testing';
import { boot, closeAll, listen, logs } from './support/applications.js';

const OPTIONS = { ttl: '10s', wait: 0 } as const;
const START = Date.UTC(2026, 2, 29, 0, 0, 30);

/** What happens while work runs under a lock. */
let during: () => unknown;

async function work(): Promise<string> {
  await during();
  return 'written';
}

@Controller()
class Orders {
  constructor(private readonly locks: LockService) {}

  @Get('intercepted')
  @UseInterceptors(LockInterceptor('order', OPTIONS))
  intercepted(): Promise<string> {
    return work();
  }

  @Get('decorated')
  @WithLock('order', OPTIONS)
  decorated(): Promise<string> {
    return work();
  }

  @Get('nested')
  async nested(): Promise<string> {
    let inner: unknown;
    const outer = this.locks.withLock('order', OPTIONS, async () => {
      inner = await this.locks
        .withLock('order', { ...OPTIONS, reentrant: true }, work)
        .catch((error: unknown) => error);
    });
    await outer.catch(() => undefined);
    if (inner instanceof LockLostError) throw inner;
    return String(inner);
  }
}

@Injectable()
class Reports {
  runs = 0;

  @LockedCron(CronExpression.EVERY_MINUTE, { name: 'report' })
  async report(): Promise<void> {
    this.runs++;
    await work();
  }
}

afterEach(closeAll);

describe('Work whose machine was suspended for longer than its lock lasts', () => {
  it.each(['intercepted', 'decorated', 'nested'])(
    'is no success, if another process has the lock by then: %s',
    async (path) => {
      const [clock, others] = [new ManualClock(), new ManualClock()];
      const masters = memoryMasters(3, others);
      const other = memoryLockService({ masters, clock: others });
      let isTaken = false;
      during = async () => {
        await others.advance(60_000);
        clock.suspend(60_000);
        isTaken = (await other.acquire('order', { ttl: '30s', wait: 0 })).isHeld;
      };
      const { url } = await listen({ imports: [RedlockModule.forRoot({ masters, clock })], controllers: [Orders] });
      const { status } = await fetch(`${url}/${path}`);
      expect({ isTaken, status }).toEqual({ isTaken: true, status: 500 });
    },
  );
});

it.each(['before its method is called', 'before its method returns'])(
  'A tick runs once if the wall clock is set forward %s and the lock has lasted',
  async (when) => {
    const [clock, servers] = [new ManualClock(START), new ManualClock(START)];
    const masters = memoryMasters(3, servers);
    const step = (): void => clock.stepWall(50);
    const jobs = { started: () => when === 'before its method is called' && step() };
    const locks = RedlockModule.forRoot({
      masters,
      clock,
      restartGuard: false,
      drainTimeout: 0,
      observers: [{ jobs }],
    });
    const app = await boot({ imports: [locks, ScheduleModule.forRoot(), RedlockScheduleModule], providers: [Reports] });
    await clock.settle();
    during = when === 'before its method returns' ? step : () => undefined;
    for (let passed = 0; passed < 45_000; passed += 500) {
      await servers.advance(500);
      await clock.advance(500);
    }
    expect(app.get(Reports).runs).toBe(1);
    expect(logs.filter((line) => line.startsWith('warn'))).toEqual([]);
  },
);
