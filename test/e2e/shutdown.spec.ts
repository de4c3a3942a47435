import { beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Injectable, Module, type OnApplicationShutdown, UseInterceptors } from '@nestjs/common';
import { ScheduleModule, Timeout } from '@nestjs/schedule';
import { LockInterceptor, LockService, LockServiceStoppedError, WithLock } from 'nestjs-redlock';
import { eventually } from '../support/eventually.js';
import { ADAPTERS } from './support/adapters.js';
import { boot, listen, logs } from './support/applications.js';
import { type Deferred, deferred, outcomeOf, settle } from './support/deferred.js';
import { jobUnder, Locks, LocksPerTest } from './support/locks.js';

const locks = new LocksPerTest(3, { drainTimeout: '5s' });
let work: Deferred<string>;
let started: Deferred;

beforeEach(() => {
  [work, started] = [deferred(), deferred()];
});

describe('When the application shuts down', () => {
  it('new locks are refused from the notification of the module on, while all of its users still exist', async () => {
    const refused: unknown[] = [];
    @Injectable()
    class Last implements OnApplicationShutdown {
      constructor(readonly locks: LockService) {}

      @WithLock('decorated', { ttl: '5s', onLocked: 'skip' })
      async run(): Promise<void> {}

      async onApplicationShutdown(): Promise<void> {
        for (const call of [() => this.run(), () => this.locks.acquire('a'), () => this.locks.tryAcquire('a')]) {
          refused.push(await call().catch((error: unknown) => error));
        }
      }
    }
    const app = await boot({ imports: [locks.module()], providers: [Last] });
    await app.close();
    expect(refused).toEqual([
      expect.any(LockServiceStoppedError),
      expect.any(LockServiceStoppedError),
      expect.any(LockServiceStoppedError),
    ]);
  });

  describe('a call that waits', () => {
    const Skipping = jobUnder('a', { onLocked: 'skip', wait: '1h' });
    const Answering = jobUnder('a', { onLocked: () => 'answered', wait: '1h' });
    const providers = [Skipping, Answering];
    @Module({ imports: [ScheduleModule.forRoot()] })
    class Ticks {
      @Timeout(0)
      @WithLock('a', { onLocked: 'skip', wait: '1h' })
      async tick(): Promise<void> {}
    }
    const isWaiting = () => eventually(() => locks.clock.pendingTimers > 1);

    it.each(['another instance', 'this instance'])('for a holder in %s is skipped, if it may be', async (where) => {
      const app = await boot({ imports: [locks.module({ drainTimeout: 0 })], providers });
      const other = await boot({ imports: [locks.module()] });
      const held = await (where === 'this instance' ? app : other).get(LockService).acquire('a', '10s');
      const calls = providers.map((job) => outcomeOf(app.get(job).run()));
      await settle();
      const closing = app.close();
      expect(await calls[0]).toBeUndefined();
      expect(await calls[1]).toMatchObject({ name: 'LockServiceStoppedError', wasHeld: true });
      await held.release();
      await closing;
    });

    it('for masters that cannot vote is not skipped: an outage is no contention', async () => {
      const app = await boot({ imports: [locks.module({ drainTimeout: 0 })], providers });
      locks.each('takeDown');
      const call = outcomeOf(app.get(Skipping).run());
      await settle();
      await Promise.all([app.close(), locks.clock.advance(1)]);
      expect(await call).toMatchObject({ name: 'LockServiceStoppedError', wasHeld: false });
      locks.each('bringUp');
    });

    it('in a scheduled job that may be skipped logs no error', async () => {
      const other = await boot({ imports: [locks.module()] });
      const held = await other.get(LockService).acquire('a', '10s');
      const app = await boot({ imports: [locks.module(), Ticks] });
      await isWaiting();
      await app.close();
      await settle();
      expect(logs.filter((line) => line.startsWith('error'))).toEqual([]);
      await held.release();
    });
  });

  it('a lock that is held is kept and extended until its work has ended', async () => {
    const app = await boot({ imports: [locks.module({ drainTimeout: '1h' })] });
    const call = app.get(LockService).withLock('a', '10s', async (lock) => {
      await work.promise;
      return lock.isHeld;
    });
    await settle();
    let closed = false;
    const closing = app.close().then(() => (closed = true));
    await locks.clock.advance(60_000);
    expect([closed, locks.held]).toEqual([false, true]);
    work.resolve('done');
    await expect(call).resolves.toBe(true);
    await closing;
  });

  it('work that continues beyond drainTimeout loses its lock, and its signal aborts', async () => {
    const app = await boot({ imports: [locks.module()] });
    let signal: AbortSignal | undefined;
    const call = app.get(LockService).withLock('a', '10s', async (lock) => {
      signal = lock.signal;
      await work.promise;
    });
    const outcome = outcomeOf(call);
    await settle();
    const closing = app.close();
    await locks.clock.advance(4_999);
    expect(signal?.aborted).toBe(false);
    await locks.clock.advance(1);
    expect(signal?.reason).toMatchObject({ name: 'LockLostError', cause: 'shutdown' });
    await closing;
    await locks.expectNothingLeft();
    work.resolve('too late');
    expect(await outcome).toBe(signal?.reason);
  });

  it('several services are drained independently of each other', async () => {
    const billing = new Locks(1, { clock: locks.clock, name: 'billing' });
    @Injectable()
    class Jobs {
      @WithLock('a')
      async main(): Promise<string> {
        return work.promise;
      }

      @WithLock('b', { service: 'billing' })
      async billing(): Promise<string> {
        return work.promise;
      }
    }
    const app = await boot({ imports: [locks.module(), billing.module()], providers: [Jobs] });
    const calls = Promise.all([app.get(Jobs).main(), app.get(Jobs).billing()]);
    await settle();
    const closing = app.close();
    await settle();
    expect([locks.held, billing.held]).toEqual([true, true]);
    work.resolve('done');
    await expect(calls).resolves.toEqual(['done', 'done']);
    await closing;
    await billing.expectNothingLeft();
  });
});

describe.each(ADAPTERS)('app.close() on $platform with a request in flight', ({ adapter }) => {
  @Controller()
  class Slow {
    @Get('decorated')
    @WithLock('a', '10s')
    async decorated(): Promise<string> {
      started.resolve();
      return work.promise;
    }

    @Get('intercepted')
    @UseInterceptors(LockInterceptor('a', '10s'))
    async intercepted(): Promise<string> {
      started.resolve();
      return work.promise;
    }
  }

  it.each(['decorated', 'intercepted'])('keeps the lock of a handler, %s, until it has responded', async (path) => {
    const { app, url } = await listen({ imports: [locks.module()], controllers: [Slow] }, adapter());
    const response = fetch(`${url}/${path}`, { headers: { connection: 'close' } });
    await started.promise;
    let closed = false;
    const closing = app.close().then(() => (closed = true));
    await locks.clock.advance(60_000);
    expect([closed, locks.held]).toEqual([false, true]);
    work.resolve('done');
    expect(await (await response).text()).toBe('done');
    await closing;
  });
});
