import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, Inject, Injectable, NotFoundException, Param, Post, UseInterceptors } from '@nestjs/common';
import {
  LockedMethodOptions,
  LockInterceptor,
  LockNotAcquiredError,
  LockService,
  QuorumUnavailableError,
  RedlockModule,
  WithLock,
} from 'nestjs-redlock';
import { memoryMasters } from 'nestjs-redlock/testing';
import { ADAPTERS } from './support/adapters.js';
import { boot, closeAll, listen, logs } from './support/applications.js';
import { deferred, settle } from './support/deferred.js';
import { jobUnder, LocksPerTest } from './support/locks.js';
import { throwing } from '../support/throwing.js';

describe('The outcome of a call', () => {
  afterEach(() => {
    locks.each('bringUp');
    locks.each('resume');
  });

  const locks = new LocksPerTest(3);

  async function methodWith(options: LockedMethodOptions, work: () => unknown = () => 'ran') {
    const Job = jobUnder('job', { ttl: '10s', ...options }, work);
    const app = await boot({ imports: [locks.module()], providers: [Job] });
    return { run: async () => app.get(Job).run(), locks: app.get(LockService) };
  }

  /** Another application that holds the resource. */
  async function occupy(resource = 'job') {
    const other = await boot({ imports: [locks.module()] });
    return other.get(LockService).acquire(resource, '30s');
  }

  describe('onLocked', () => {
    it.each([{}, { onLocked: 'throw' }] as const)('%j fails after the whole budget', async (options) => {
      const lock = await occupy();
      const { run } = await methodWith({ wait: '2s', ...options });
      const outcome = run().catch((error: unknown) => error);
      await locks.clock.advance(1_999);
      expect(await Promise.race([outcome, Promise.resolve('waiting')])).toBe('waiting');
      await locks.clock.advance(1);
      expect(await outcome).toBeInstanceOf(LockNotAcquiredError);
      expect(await outcome).toMatchObject({ resources: ['job'], waited: 2_000, code: 'LOCK_NOT_ACQUIRED' });
      await lock.release();
    });

    it("'skip' waits if it has a budget", async () => {
      const lock = await occupy();
      const { run } = await methodWith({ onLocked: 'skip', wait: '2s' });
      const call = run();
      await locks.clock.advance(1_000);
      await lock.release();
      await locks.clock.advance(1_000);
      await expect(call).resolves.toBe('ran');
    });

    it("'skip' resolves with undefined after exactly one attempt", async () => {
      const lock = await occupy();
      let ran = false;
      const { run } = await methodWith({ onLocked: 'skip' }, () => (ran = true));
      const asked = jest.spyOn(locks.masters[0]!, 'ask');
      await expect(run()).resolves.toBeUndefined();
      expect(asked.mock.calls.filter(([{ op }]) => op === 'acquire')).toHaveLength(1);
      expect(ran).toBe(false);
      await lock.release();
      await expect(run()).resolves.toBe(true);
    });

    it('a function determines the result, a promise of it, or an error', async () => {
      const lock = await occupy();
      const given: unknown[] = [];
      const { run } = await methodWith({ wait: 0, onLocked: async (error) => Promise.resolve(given.push(error)) });
      await expect(run()).resolves.toBe(1);
      expect(given).toEqual([expect.any(LockNotAcquiredError)]);
      const failure = new Error('mine');
      const failing = await methodWith({ wait: 0, onLocked: throwing(failure) });
      await expect(failing.run()).rejects.toBe(failure);
      await lock.release();
    });

    it.each(['skip', () => 'busy'] as const)('%p does not hide an outage', async (onLocked) => {
      const { run } = await methodWith({ onLocked, wait: 0 });
      locks.each('takeDown');
      await expect(run()).rejects.toThrow(QuorumUnavailableError);
    });

    it.each(['skip', () => 'busy'] as const)('%p does not hide an error of the work', async (onLocked) => {
      const failure = new LockNotAcquiredError(['other'], [], 0, undefined);
      const { run } = await methodWith({ onLocked }, throwing(failure));
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
      await locks.clock.advance(25_000);
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

    it.each(['takeDown', 'pause'] as const)(
      'is neither replaced nor delayed by a release that fails: %s',
      async (fail) => {
        const { locks: service } = await methodWith({});
        const call = service.withLock('a', '1s', () => {
          locks.each(fail);
          return 'done';
        });
        // For as long as a master may take.
        await locks.clock.advance(250);
        await expect(call).resolves.toBe('done');
      },
    );
  });

  describe('A lock that is lost while the work runs', () => {
    it.each(['withLock', '@WithLock'])('%s rejects although the work returned a value', async (way) => {
      const work = deferred<string>();
      const { run, locks: service } = await methodWith({}, () => work.promise);
      const call = way === '@WithLock' ? run() : service.withLock('job', '10s', () => work.promise);
      await settle();
      locks.each('pause');
      await locks.clock.advance(10_000);
      work.resolve('value');
      await expect(call).rejects.toMatchObject({ name: 'LockLostError', cause: 'expired', resources: ['job'] });
      expect(logs).toContainEqual(expect.stringContaining('warn lost the lock on "job"'));
    });
  });

  describe.each(ADAPTERS)('A handler under @WithLock on $platform, without a filter,', ({ adapter }) => {
    @Controller()
    class Orders {
      constructor(private readonly locks: LockService) {}

      @Get(':id')
      @WithLock((id: string) => id, { ttl: '10s', wait: 0 })
      async get(@Param('id') id: string): Promise<unknown> {
        if (id === 'missing') throw new NotFoundException('no such order');
        if (id === 'lost') {
          locks.each('pause');
          await locks.clock.advance(10_000);
        }
        if (id === 'nested') await this.locks.acquire('nested');
        return { id };
      }
    }

    it('answers with 423 while it is held, 503 in an outage, 500 after a loss, and with errors of its own', async () => {
      const { url } = await listen({ imports: [locks.module()], controllers: [Orders] }, adapter());
      const get = async (id: string) => (await fetch(`${url}/${id}`)).json();
      const lock = await occupy('42');
      expect(await get('42')).toEqual({ statusCode: 423, message: 'Locked' });
      await lock.release();
      expect(await get('42')).toEqual({ id: '42' });
      expect(await get('missing')).toMatchObject({ statusCode: 404, message: 'no such order' });
      expect(await get('nested')).toMatchObject({ statusCode: 500 });
      locks.each('takeDown');
      expect(await get('42')).toEqual({ statusCode: 503, message: 'Service Unavailable' });
      locks.each('bringUp');
      expect(await get('lost')).toMatchObject({ statusCode: 500 });
    });
  });
});

describe('A call that is skipped because another holder has the lock', () => {
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
    const { app, url } = await listen({
      imports: [RedlockModule.forRoot({ masters: memoryMasters(3), observers })],
      controllers: [Reports],
      providers: [Jobs],
    });
    const jobs = app.get(Jobs);
    await using _ = await jobs.locks.acquire('report');
    const from = logs.length;
    await expect(jobs.report()).resolves.toBeUndefined();
    await expect(jobs.reportLater()).resolves.toBe('later');
    await expect(jobs.locks.tryAcquire('report')).resolves.toBeNull();
    await expect(fetch(`${url}/report`, { method: 'POST' })).resolves.toMatchObject({ status: 202 });
    const callers = [
      ...['@WithLock on Jobs.report', '@WithLock on Jobs.reportLater', 'tryAcquire'],
      'LockInterceptor on Reports.create',
    ];
    const why = /was skipped: "report" is held by .*: not acquired \(memory-1: held.*/;
    expect(logs.slice(from).map((line) => line.replace(why, 'skipped'))).toEqual(
      callers.map((caller) => `debug ${caller} skipped`),
    );
    expect(skipped).toEqual(callers.map((caller) => [caller, 'LockNotAcquiredError']));
  });
});
