import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Inject, Injectable, NotFoundException, Param, Post, UseInterceptors } from '@nestjs/common';
import {
  LockedMethodOptions,
  LockInterceptor,
  LockLostError,
  LockNotAcquiredError,
  LockService,
  QuorumUnavailableError,
  RedlockModule,
  WithLock,
} from 'nestjs-redlock';
import { ManualClock, memoryMasters } from 'nestjs-redlock/testing';
import { ADAPTERS } from './support/adapters.js';
import { boot, closeAll, listen, logs } from './support/applications.js';
import { deferred, settle } from './support/deferred.js';
import { Locks } from './support/locks.js';

describe('The outcome of a call', () => {
  let clock: ManualClock;
  let locks: Locks;

  beforeEach(() => {
    clock = new ManualClock();
    locks = new Locks(3, { clock });
  });
  afterEach(async () => {
    for (const master of locks.masters) {
      master.bringUp();
      master.resume();
    }
    await closeAll();
  });

  const takeDown = () => locks.masters.forEach((master) => master.takeDown());

  /** Counts the acquire requests to the first master. */
  function countAttempts(): () => number {
    let attempts = 0;
    const [master] = locks.masters;
    const ask = master!.ask.bind(master);
    master!.ask = (request, reply) => {
      if (request.op === 'acquire') attempts++;
      ask(request, reply);
    };
    return () => attempts;
  }

  async function methodWith(options: LockedMethodOptions, work: () => unknown = () => 'ran') {
    @Injectable()
    class Jobs {
      @WithLock('job', { ttl: '10s', ...options })
      async run(): Promise<unknown> {
        return work();
      }
    }
    const app = await boot({ imports: [locks.module()], providers: [Jobs] });
    return { run: async () => app.get(Jobs).run(), locks: app.get(LockService) };
  }

  /** Another application that holds the resource. */
  async function occupy(resource = 'job') {
    const other = await boot({ imports: [locks.module()] });
    return other.get(LockService).acquire(resource, '30s');
  }

  describe('onLocked', () => {
    it("'throw' is the default, and waits for the whole budget", async () => {
      const lock = await occupy();
      const { run } = await methodWith({ wait: '2s' });
      const call = run();
      const outcome = call.catch((error: unknown) => error);
      await clock.advance(1_999);
      expect(await Promise.race([outcome, Promise.resolve('waiting')])).toBe('waiting');
      await clock.advance(1);
      const error = (await outcome) as LockNotAcquiredError;
      expect(error).toBeInstanceOf(LockNotAcquiredError);
      expect(error).toMatchObject({ resources: ['job'], waited: 2_000, code: 'LOCK_NOT_ACQUIRED' });
      expect(error.retryAfter).toBeGreaterThan(27_000);
      await lock.release();
    });

    it("'skip' resolves with undefined after exactly one attempt", async () => {
      const lock = await occupy();
      let ran = false;
      const { run } = await methodWith({ onLocked: 'skip' }, () => (ran = true));
      const attempts = countAttempts();
      await expect(run()).resolves.toBeUndefined();
      expect(attempts()).toBe(1);
      expect(ran).toBe(false);
      await lock.release();
      await expect(run()).resolves.toBe(true);
    });

    it("'skip' waits if it has a budget", async () => {
      const lock = await occupy();
      const { run } = await methodWith({ onLocked: 'skip', wait: '2s' });
      const call = run();
      await clock.advance(1_000);
      await lock.release();
      await clock.advance(1_000);
      await expect(call).resolves.toBe('ran');
    });

    it('a function determines the result, a promise of it, or an error', async () => {
      const lock = await occupy();
      const given: unknown[] = [];
      const { run } = await methodWith({
        wait: 0,
        onLocked: async (error) => {
          given.push(error);
          return Promise.resolve('busy');
        },
      });
      await expect(run()).resolves.toBe('busy');
      expect(given).toEqual([expect.any(LockNotAcquiredError)]);
      const failure = new Error('mine');
      const failing = await methodWith({
        wait: 0,
        onLocked: () => {
          throw failure;
        },
      });
      await expect(failing.run()).rejects.toBe(failure);
      await lock.release();
    });

    it.each(['skip', () => 'busy'] as const)('%p does not hide an outage', async (onLocked) => {
      const { run } = await methodWith({ onLocked, wait: 0 });
      takeDown();
      await expect(run()).rejects.toThrow(QuorumUnavailableError);
    });

    it.each(['skip', () => 'busy'] as const)('%p does not hide an error of the work', async (onLocked) => {
      const failure = new LockNotAcquiredError(['other'], [], 0, undefined);
      const { run } = await methodWith({ onLocked }, () => {
        throw failure;
      });
      await expect(run()).rejects.toBe(failure);
    });

    it('does not hide that a call would wait for itself, nor that the application is closing', async () => {
      const { run, locks: service } = await methodWith({ onLocked: 'skip' });
      await expect(service.withLock('job', '1s', run)).rejects.toMatchObject({ code: 'LOCK_REENTRY' });
      await closeAll();
      await expect(run()).rejects.toMatchObject({ code: 'LOCK_SERVICE_STOPPED' });
    });

    it('treats undefined options as absent', async () => {
      const undefinedOptions = { wait: undefined, extend: undefined, onLocked: undefined } as never;
      const work = deferred();
      const { run, locks: service } = await methodWith(undefinedOptions, () => work.promise);
      const call = run();
      await clock.advance(25_000);
      expect(locks.held).toBe(true);
      work.resolve();
      await expect(call).resolves.toBeUndefined();
      const skipping = await methodWith({ onLocked: 'skip', wait: undefined } as never);
      await using _ = await service.acquire('job');
      await expect(skipping.run()).resolves.toBeUndefined();
    });
  });

  describe('The outcome of the work', () => {
    it('is passed on unchanged: values, errors, and thrown values that are no errors', async () => {
      const { locks: service } = await methodWith({});
      const value = { some: 'object' };
      await expect(service.withLock('a', '1s', () => value)).resolves.toBe(value);
      for (const thrown of [new NotFoundException(), 'text', undefined, null]) {
        const call = service.withLock('a', '1s', () => Promise.reject<unknown>(thrown as Error));
        await expect(call).rejects.toBe(thrown);
      }
      await settle();
      expect(locks.held).toBe(false);
    });

    it('is not replaced by a failed release, and not delayed for longer than a master may take', async () => {
      const { locks: service } = await methodWith({});
      const call = service.withLock('a', '1s', () => {
        takeDown();
        return 'done';
      });
      await clock.advance(50);
      await expect(call).resolves.toBe('done');
      for (const master of locks.masters) master.bringUp();

      const hanging = service.withLock('b', '1s', () => {
        locks.masters.forEach((master) => master.pause());
        return 'done';
      });
      await clock.advance(50);
      await expect(hanging).resolves.toBe('done');
    });

    it('is not delayed by a release if it is an error', async () => {
      const failure = new Error('mine');
      const { locks: service } = await methodWith({});
      const call = service.withLock('a', '1s', () => {
        locks.masters.forEach((master) => master.pause());
        throw failure;
      });
      await expect(call).rejects.toBe(failure);
    });
  });

  describe('A lock that is lost while the work runs', () => {
    it.each(['withLock', '@WithLock'])('%s rejects although the work returned a value', async (way) => {
      const work = deferred<string>();
      const { run, locks: service } = await methodWith({}, () => work.promise);
      const call = way === '@WithLock' ? run() : service.withLock('job', '10s', () => work.promise);
      await settle();
      locks.masters.forEach((master) => master.pause());
      await clock.advance(10_000);
      work.resolve('value');
      await expect(call).rejects.toMatchObject({ name: 'LockLostError', cause: 'expired', resources: ['job'] });
      expect(logs).toContainEqual(expect.stringContaining('warn lost the lock on "job"'));
    });

    it('aborts the signal no later than the validity ends, with the error as its reason', async () => {
      const { locks: service } = await methodWith({});
      const work = deferred();
      let signal: AbortSignal | undefined;
      const call = service.withLock('a', '10s', async (lock) => {
        signal = lock.signal;
        await work.promise;
      });
      await settle();
      locks.masters.forEach((master) => master.pause());
      const validity = 10_000 - (10_000 * 0.01 + 2);
      await clock.advance(validity - 2);
      expect(signal?.aborted).toBe(false);
      await clock.advance(2);
      expect(signal?.reason).toBeInstanceOf(LockLostError);
      work.resolve();
      await expect(call).rejects.toBe(signal?.reason);
    });

    it('gives way to an error of the work', async () => {
      const failure = new NotFoundException();
      const { locks: service } = await methodWith({});
      const call = service.withLock('a', '10s', async (lock) => {
        locks.masters.forEach((master) => master.pause());
        await new Promise((resolve) => lock.signal.addEventListener('abort', resolve));
        throw failure;
      });
      const outcome = call.catch((error: unknown) => error);
      await settle();
      await clock.advance(10_000);
      expect(await outcome).toBe(failure);
    });

    it('reports that maxHold was reached', async () => {
      const { locks: service } = await methodWith({});
      const work = deferred();
      const call = service.withLock('a', { ttl: '10s', maxHold: '15s' }, () => work.promise);
      await clock.advance(15_000);
      work.resolve();
      await expect(call).rejects.toMatchObject({ cause: 'max-hold' });
    });

    it('reports that another holder has taken it', async () => {
      const { locks: service } = await methodWith({});
      const work = deferred();
      const call = service.withLock('job', '10s', () => work.promise);
      await settle();
      locks.masters.forEach((master) => master.flush());
      const thief = await occupy();
      await clock.advance(10_000 / 3 + 1);
      work.resolve();
      await expect(call).rejects.toMatchObject({ cause: 'owner-changed' });
      await thief.release();
    });
  });

  describe('A lock that lives', () => {
    it('is extended while the work runs, however long, and then stops', async () => {
      const { locks: service } = await methodWith({});
      const work = deferred<string>();
      const call = service.withLock('a', '10s', () => work.promise);
      await clock.advance(120_000);
      expect(locks.held).toBe(true);
      work.resolve('done');
      await expect(call).resolves.toBe('done');
      await settle();
      expect(clock.pendingTimers).toBe(0);
      expect(locks.held).toBe(false);
    });

    it('expires without extension if it was acquired by hand', async () => {
      const { locks: service } = await methodWith({});
      const lock = await service.acquire('a', '10s');
      await clock.advance(10_000);
      expect(lock.isHeld).toBe(false);
      expect(lock.loss).toMatchObject({ cause: 'expired' });
      expect(locks.held).toBe(false);
    });

    it('stays held for minHold after the work has ended', async () => {
      const { run, locks: service } = await methodWith({ minHold: '20s' });
      await expect(run()).resolves.toBe('ran');
      await clock.advance(19_990);
      await expect(service.tryAcquire('job')).resolves.toBeNull();
      await clock.advance(20);
      const lock = await service.tryAcquire('job');
      expect(lock?.isHeld).toBe(true);
      await lock?.release();
    });

    it('can be inspected from another application', async () => {
      const { locks: service } = await methodWith({});
      await expect(service.inspect('job')).resolves.toMatchObject({ state: 'free', remaining: 0 });
      const lock = await occupy();
      await clock.advance(1_000);
      await expect(service.inspect('job')).resolves.toMatchObject({ state: 'held', remaining: 29_000 });
      locks.masters.slice(1).forEach((master) => master.takeDown());
      await expect(service.inspect('job')).resolves.toMatchObject({ state: 'unknown', remaining: undefined });
      await lock.release();
    });
  });

  describe.each(ADAPTERS)('on $platform, Nest itself answers', ({ adapter }) => {
    @Controller()
    class Orders {
      constructor(private readonly locks: LockService) {}

      @Get('decorated/:id')
      @WithLock((id: string) => id, { ttl: '10s', wait: 0 })
      async decorated(@Param('id') id: string): Promise<string> {
        return this.locked(id);
      }

      @Get('intercepted/:id')
      @UseInterceptors(
        LockInterceptor((context) => context.switchToHttp().getRequest<{ params: { id: string } }>().params.id, {
          ttl: '10s',
          wait: 0,
        }),
      )
      async intercepted(@Param('id') id: string): Promise<string> {
        return this.locked(id);
      }

      private async locked(id: string): Promise<string> {
        if (id === 'missing') throw new NotFoundException('no such order');
        if (id === 'lost') {
          locks.masters.forEach((master) => master.pause());
          await clock.advance(10_000);
          expect(this.locks.current()?.isHeld).toBe(false);
        }
        if (id === 'nested') await this.locks.acquire('nested');
        return id;
      }
    }

    const start = () => listen({ imports: [locks.module()], controllers: [Orders] }, adapter());
    const get = async (url: string) => {
      const response = await fetch(url);
      return { status: response.status, body: (await response.json()) as { message: string } };
    };

    describe.each(['decorated', 'intercepted'])('a %s handler with', (way) => {
      it('423 when another holder has the lock, without revealing the holder to the client', async () => {
        const { url } = await start();
        const lock = await occupy('42');
        const { status, body } = await get(`${url}/${way}/42`);
        expect(status).toBe(423);
        expect(body).toEqual({ statusCode: 423, message: 'Locked' });
        await lock.release();
      });

      it('503 in an outage', async () => {
        const { url } = await start();
        takeDown();
        expect(await get(`${url}/${way}/42`)).toEqual({
          status: 503,
          body: { statusCode: 503, message: 'Service Unavailable' },
        });
      });

      it('500 when the lock was lost', async () => {
        const { url } = await start();
        expect((await get(`${url}/${way}/lost`)).status).toBe(500);
      });

      it('500 when the call would wait for itself', async () => {
        const { url } = await start();
        expect((await get(`${url}/${way}/nested`)).status).toBe(500);
      });

      it('404 when the handler throws a NotFoundException', async () => {
        const { url } = await start();
        const { status, body } = await get(`${url}/${way}/missing`);
        expect(status).toBe(404);
        expect(body.message).toBe('no such order');
        await locks.expectNothingLeft();
      });

      it('200 when the lock is free again after a 423', async () => {
        const { url } = await start();
        const lock = await occupy('42');
        expect((await fetch(`${url}/${way}/42`)).status).toBe(423);
        await lock.release();
        const response = await fetch(`${url}/${way}/42`);
        expect(response.status).toBe(200);
        expect(await response.text()).toBe('42');
        await locks.expectNothingLeft();
      });
    });
  });
});

describe('A call that is skipped because another holder has the lock', () => {
  afterEach(closeAll);

  @Injectable()
  class Jobs {
    constructor(@Inject(LockService) readonly locks: LockService) {}

    @WithLock('report', { ttl: '5s', onLocked: 'skip' })
    async report(): Promise<string | undefined> {
      return 'done';
    }

    @WithLock('report', { ttl: '5s', wait: 0, onLocked: () => 'later' })
    async reportLater(): Promise<string> {
      return 'done';
    }

    @WithLock('report', { ttl: '5s', wait: 0 })
    async mustReport(): Promise<string> {
      return 'done';
    }
  }

  @Controller('report')
  class Reports {
    @Post()
    @UseInterceptors(LockInterceptor('report', { ttl: '5s', onLocked: { status: 202 } }))
    create(): string {
      return 'done';
    }
  }

  it('is logged for debugging, with the method and the resource, and reported to observers', async () => {
    const skipped: unknown[] = [];
    const observers = [{ skipped: (caller: string, error: Error) => skipped.push([caller, error.name]) }];
    const app = await boot({
      imports: [RedlockModule.forRoot({ masters: memoryMasters(3), observers })],
      providers: [Jobs],
    });
    const jobs = app.get(Jobs);
    await using _ = await jobs.locks.acquire('report');
    const from = logs.length;
    await expect(jobs.report()).resolves.toBeUndefined();
    await expect(jobs.reportLater()).resolves.toBe('later');
    await expect(jobs.locks.tryAcquire('report')).resolves.toBeNull();
    const why = /was skipped: "report" is held by .*: not acquired \(memory-1: held/;
    expect(logs.slice(from).map((line) => line.replace(why, 'skipped').replace(/ for \d+.*/, ''))).toEqual([
      'debug @WithLock on Jobs.report skipped',
      'debug @WithLock on Jobs.reportLater skipped',
      'debug tryAcquire skipped',
    ]);
    expect(skipped).toEqual(
      ['@WithLock on Jobs.report', '@WithLock on Jobs.reportLater', 'tryAcquire'].map((caller) => [
        caller,
        'LockNotAcquiredError',
      ]),
    );
  });

  it('is logged with the handler of an interceptor', async () => {
    const { app, url } = await listen({
      imports: [RedlockModule.forRoot({ masters: memoryMasters(3) })],
      controllers: [Reports],
    });
    await using _ = await app.get(LockService).acquire('report');
    const from = logs.length;
    await expect(fetch(`${url}/report`, { method: 'POST' })).resolves.toMatchObject({ status: 202 });
    expect(logs.slice(from)).toEqual([
      expect.stringMatching(/^debug LockInterceptor on Reports\.create was skipped: "report" is held/),
    ]);
  });

  it('leaves no line if the call fails instead, which its caller handles', async () => {
    const app = await boot({ imports: [RedlockModule.forRoot({ masters: memoryMasters(3) })], providers: [Jobs] });
    const jobs = app.get(Jobs);
    await using _ = await jobs.locks.acquire('report');
    const from = logs.length;
    await expect(jobs.mustReport()).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
    await expect(jobs.locks.acquire('report', { ttl: '5s', wait: 0 })).rejects.toThrow('held by');
    expect(logs.slice(from)).toEqual([]);
  });
});
