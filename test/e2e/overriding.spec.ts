import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Injectable, Module, UseInterceptors } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  getLockServiceToken,
  InjectLockService,
  LockInterceptor,
  LockService,
  RedlockModule,
  WithLock,
} from 'nestjs-redlock';
import { ManualClock, memoryLockService, memoryMasters } from 'nestjs-redlock/testing';
import { closeAll, closeLater, compile } from './support/applications.js';

afterEach(closeAll);

@Injectable()
class Job {
  constructor(
    readonly byClass: LockService,
    @InjectLockService() readonly byToken: LockService,
  ) {}

  @WithLock('job', { ttl: '10s', wait: 0 })
  async run(): Promise<readonly string[] | undefined> {
    return this.byClass.current()?.resources;
  }
}

@Controller()
class JobController {
  @Get()
  @UseInterceptors(LockInterceptor('route', { ttl: '10s', wait: 0 }))
  route(): string {
    return 'done';
  }
}

@Injectable()
class BillingJob {
  @WithLock('bill', { ttl: '10s', service: 'billing', wait: 0 })
  async run(): Promise<string> {
    return 'billed';
  }
}

/** Nothing listens on this port, so every attempt to connect fails. */
const redlock = (options: { name?: string } = {}) =>
  RedlockModule.forRoot({ masters: ['redis://127.0.0.1:1'], connectTimeout: 500, ...options });

@Module({ imports: [redlock()], providers: [Job], controllers: [JobController] })
class AppModule {}

describe('A lock service that a test puts in place of the real one', () => {
  it('is injected and locks methods and handlers, and no connection is opened', async () => {
    const locks = memoryLockService();
    const testing = Test.createTestingModule({ imports: [AppModule] })
      .overrideProvider(LockService)
      .useValue(locks);
    const app = closeLater((await testing.compile()).createNestApplication());
    app.useLogger(false);
    await app.listen(0, '127.0.0.1');

    const job = app.get(Job);
    expect([job.byClass, job.byToken]).toEqual([locks, locks]);
    await expect(job.run()).resolves.toEqual(['job']);
    expect((await fetch(await app.getUrl())).status).toBe(200);

    await using _ = await locks.acquire(['job', 'route']);
    await expect(job.run()).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
    expect((await fetch(await app.getUrl())).status).toBe(423);
  });

  it('does not exist unless a test provides it: boot needs its masters', async () => {
    await expect(compile({ imports: [AppModule] })).rejects.toMatchObject({ code: 'QUORUM_UNAVAILABLE' });
  });

  it('can have a name', async () => {
    const locks = memoryLockService();
    const testing = Test.createTestingModule({ imports: [redlock({ name: 'billing' })], providers: [BillingJob] });
    const app = await testing.overrideProvider(getLockServiceToken('billing')).useValue(locks).compile();
    await closeLater(app).init();
    await expect(app.get(BillingJob).run()).resolves.toBe('billed');
    await using _ = await locks.acquire('bill');
    await expect(app.get(BillingJob).run()).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
  });

  it.each<[string, object, string]>([
    ['methods', { providers: [Job] }, '@WithLock on Job.run'],
    ['handlers', { controllers: [JobController] }, 'LockInterceptor'],
  ])('cannot be a stub where it has to lock %s', async (_, metadata, where) => {
    const testing = Test.createTestingModule({ imports: [redlock()], ...metadata });
    const stub = { acquire: async () => undefined };
    const boot = async () => (await testing.overrideProvider(LockService).useValue(stub).compile()).init();
    await expect(boot()).rejects.toMatchObject({ name: 'RedlockConfigError', option: expect.stringContaining(where) });
  });

  it('may be a stub where only its methods are called', async () => {
    const testing = Test.createTestingModule({ imports: [redlock()] });
    const stub = { tryAcquire: async () => null };
    const app = await testing.overrideProvider(LockService).useValue(stub).compile();
    await closeLater(app).init();
    await expect(app.get(LockService).tryAcquire('a')).resolves.toBeNull();
  });
});

describe('memoryLockService', () => {
  it('shares its locks with every service on the same masters', async () => {
    const masters = memoryMasters(3);
    const [one, other] = [memoryLockService({ masters }), memoryLockService({ masters })];
    await using _ = await one.acquire('a');
    await expect(other.tryAcquire('a')).resolves.toBeNull();
    await expect(memoryLockService().tryAcquire('a')).resolves.not.toBeNull();
    expect(one.status()).toMatchObject({ quorum: 2, canVote: true });
  });

  it('follows the clock that it is given', async () => {
    const clock = new ManualClock();
    const lock = await memoryLockService({ clock, ttl: '2s' }).acquire('a');
    await clock.advance(1_000);
    expect(lock.isHeld).toBe(true);
    await clock.advance(1_000);
    expect(lock.loss).toMatchObject({ cause: 'expired' });
  });

  it.each<[object, string]>([
    [{ ttl: '1 minute' }, 'ttl'],
    [{ master: [] }, 'memoryLockService'],
    [{ masters: [] }, 'masters'],
  ])('refuses %j', (options, option) => {
    expect(() => memoryLockService(options)).toThrow(expect.objectContaining({ option }));
  });
});
