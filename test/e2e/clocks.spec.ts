import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  Param,
  type PipeTransform,
  Sse,
  UseInterceptors,
} from '@nestjs/common';
import { CronExpression, ScheduleModule } from '@nestjs/schedule';
import { LockInterceptor, LockLostError, LockService, RedlockModule, WithLock } from 'nestjs-redlock';
import { LockedCron, RedlockScheduleModule } from 'nestjs-redlock/schedule';
import { eventually } from '../support/eventually.js';
import { boot, listen, logs } from './support/applications.js';
import { ManualClock, memoryLockService, memoryMasters } from 'nestjs-redlock/testing';
import { concat, defer, from, type Observable } from 'rxjs';
import { ADAPTERS } from './support/adapters.js';
import { LocksPerTest } from './support/locks.js';

describe('Clocks that are set, and machines that are suspended', () => {
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

  describe('Work whose machine was suspended for longer than its lock lasts', () => {
    it.each(['intercepted', 'decorated', 'nested'])(
      'is no success, if another process has the lock by then: %s',
      async (path) => {
        const [clock, others] = [new ManualClock(), new ManualClock()];
        const masters = memoryMasters(3, others);
        const other = memoryLockService({ masters, clock: others, maxTtl: '30s' });
        let isTaken = false;
        during = async () => {
          await others.advance(60_000);
          clock.suspend(60_000);
          isTaken = (await other.acquire('order', { ttl: '30s', wait: 0 })).isHeld;
        };
        const { url } = await listen({
          imports: [RedlockModule.forRoot({ masters, clock, maxTtl: '30s' })],
          controllers: [Orders],
        });
        const { status } = await fetch(`${url}/${path}`);
        expect({ isTaken, status }).toEqual({ isTaken: true, status: 500 });
      },
    );
  });

  it.each(['before its method is called', 'before its method returns'])(
    'A tick runs once if the wall clock is set forward a little %s',
    async (when) => {
      const [clock, servers] = [new ManualClock(START), new ManualClock(START)];
      const masters = memoryMasters(3, servers);
      const step = (): void => clock.stepWall(50);
      const jobs = { started: () => when === 'before its method is called' && step() };
      const locks = RedlockModule.forRoot({ masters, clock, drainTimeout: 0, observers: [{ jobs }] });
      const app = await boot({
        imports: [locks, ScheduleModule.forRoot(), RedlockScheduleModule],
        providers: [Reports],
      });
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
});

describe('A method under LockInterceptor', () => {
  const TTL = 1_000;
  const OPTIONS = { ttl: TTL, wait: '1m' } as const;

  const locks = new LocksPerTest(3);
  /** For how long each lock could be relied on when its work began. */
  let left: number[];

  beforeEach(() => {
    left = [];
  });

  /** Blocks the process for longer than any of the locks lasts. */
  function work(lock: { remaining(): number } | undefined): void {
    left.push(lock?.remaining() ?? -1);
    locks.clock.stall(2 * TTL);
  }

  function expectAllHeld(count: number): void {
    expect(left).toHaveLength(count);
    for (const remaining of left) expect(remaining).toBeGreaterThan(TTL / 2);
  }

  const resourceOf = (context: ExecutionContext): string =>
    context.switchToHttp().getRequest<{ params: { name: string } }>().params.name;

  /** A pipe that needs a few reactions, but no turn of the event loop. */
  class SlowPipe implements PipeTransform<string> {
    async transform(value: string): Promise<string> {
      await Promise.resolve();
      return value;
    }
  }

  @Controller()
  @UseInterceptors(LockInterceptor(resourceOf, OPTIONS))
  class Handlers {
    constructor(private readonly locks: LockService) {}

    @Get('value/:name')
    async value(@Param('name', SlowPipe) name: string): Promise<string> {
      work(this.locks.current());
      return name;
    }

    @Get('stream/:name')
    stream(@Param('name') name: string): Observable<string> {
      work(this.locks.current());
      return from([name]);
    }

    @Sse('events/:name')
    events(@Param('name') name: string): Observable<unknown> {
      const blocking = defer(() => {
        work(this.locks.current());
        return [];
      });
      return concat(blocking, [{ data: name }]);
    }
  }

  describe.each(ADAPTERS)('A handler on $platform', ({ adapter }) => {
    it.each(['value', 'stream', 'events'])(
      'never begins under a lock that ended while another handler blocked the process: %s',
      async (kind) => {
        const { app, url } = await listen({ imports: [locks.module()], controllers: [Handlers] }, adapter());
        const service = app.get(LockService);
        const names = ['a', 'b', 'c'];
        const held = await Promise.all(names.map((name) => service.acquire(name, { ttl: '30s' })));
        const responses = names.map((name) => fetch(`${url}/${kind}/${name}`).then((response) => response.text()));
        await eventually(() => service.ownLocks(10).waiting.locks.length === names.length);
        // All three are passed on in one turn.
        for (const lock of held) void lock.release();
        await Promise.all(responses);
        await locks.clock.settle();
        expectAllHeld(names.length);
      },
    );
  });
});
