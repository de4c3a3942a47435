import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Inject, Injectable, Module, UseInterceptors } from '@nestjs/common';
import {
  InjectLockService,
  type Lock,
  LockInterceptor,
  LockService,
  RedlockModule,
  type RedlockModuleOptions,
  type RedlockOptionsFactory,
} from 'nestjs-redlock';
import type { TestingModule } from '@nestjs/testing';
import { ManualClock, memoryMasters } from 'nestjs-redlock/testing';
import { boot, listen, logs } from './support/applications.js';
import { deferred, outcomeOf, settle } from './support/deferred.js';
import { jobUnder, Locks } from './support/locks.js';

let locks: Locks;

beforeEach(() => {
  locks = new Locks();
});

const Job = jobUnder('job', undefined, async () => locks.held);

describe('forRoot', () => {
  it('accepts a list of masters', async () => {
    const app = await boot({ imports: [RedlockModule.forRoot(locks.masters)], providers: [Job] });
    await expect(app.get(Job).run()).resolves.toBe(true);
  });

  it('applies every option', async () => {
    const app = await boot({ imports: [locks.module({ ttl: '2s', keyPrefix: 'mine:', wait: 0 })] });
    const service = app.get(LockService);
    const lock = await service.acquire('a');
    expect(lock.remaining()).toBeGreaterThan(1_500);
    expect(lock.remaining()).toBeLessThanOrEqual(2_000);
    await expect(service.acquire('a')).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED', waited: 0 });
    await lock.release();
  });

  it('may be imported several times if it is one result', async () => {
    const redlock = locks.module();
    @Module({ imports: [redlock], providers: [Job], exports: [Job] })
    class Feature {}
    const app = await boot({ imports: [redlock, Feature] });
    await expect(app.get(Job).run()).resolves.toBe(true);
  });
});

describe('forRootAsync', () => {
  @Injectable()
  class Config implements RedlockOptionsFactory {
    async createRedlockOptions(): Promise<RedlockModuleOptions> {
      return { masters: locks.masters };
    }
  }

  @Module({ providers: [Config], exports: [Config] })
  class ConfigModule {}

  it.each([
    [
      'useFactory with inject and imports',
      {
        imports: [ConfigModule],
        inject: [Config],
        useFactory: async (config: Config) => config.createRedlockOptions(),
      },
    ],
    ['a list of masters from useFactory', { useFactory: async () => locks.masters }],
    ['a synchronous useFactory', { useFactory: () => ({ masters: locks.masters }) }],
    ['useClass', { useClass: Config }],
    ['useExisting', { imports: [ConfigModule], useExisting: Config }],
  ])('accepts %s', async (_, options) => {
    const app = await boot({ imports: [RedlockModule.forRootAsync(options)], providers: [Job] });
    await expect(app.get(Job).run()).resolves.toBe(true);
    await locks.expectNothingLeft();
  });

  it('accepts name and isGlobal beside the factory', async () => {
    const redlock = RedlockModule.forRootAsync({
      name: 'billing',
      isGlobal: false,
      useFactory: () => ({ masters: locks.masters }),
    });
    @Injectable()
    class Invoices {
      constructor(@InjectLockService('billing') readonly locks: LockService) {}
    }
    @Module({ imports: [redlock], providers: [Invoices], exports: [Invoices] })
    class Billing {}
    const app = await boot({ imports: [Billing] });
    await using _ = await app.get(Invoices).locks.acquire('a');
    expect(locks.held).toBe(true);
    await expect(boot({ imports: [redlock], providers: [Invoices, Job] })).rejects.toThrow('import RedlockModule');
  });

  it('fails with the error of the factory', async () => {
    const failure = new Error('no configuration');
    const useFactory = () => Promise.reject<RedlockModuleOptions>(failure);
    await expect(boot({ imports: [RedlockModule.forRootAsync({ useFactory })] })).rejects.toBe(failure);
  });
});

describe('In production, a process that nothing ends in order', () => {
  const { NODE_ENV } = process.env;
  const onSignal = (): void => undefined;
  const warnings = (): string[] => logs.filter((line) => line.includes('SIGTERM'));
  let clock: ManualClock;
  beforeEach(() => {
    clock = new ManualClock();
    logs.length = 0;
    for (const listener of process.listeners('SIGTERM')) process.off('SIGTERM', listener);
  });
  afterEach(() => {
    process.env.NODE_ENV = NODE_ENV;
    process.off('SIGTERM', onSignal);
  });

  const start = (NODE_ENV: string): Promise<TestingModule> => {
    process.env.NODE_ENV = NODE_ENV;
    return boot({ imports: [RedlockModule.forRoot({ masters: memoryMasters(3, clock), clock })] });
  };

  it('is warned of once, when its boot is over', async () => {
    await start('production');
    expect(warnings()).toEqual([]);
    await clock.advance(60_000);
    expect(warnings()).toEqual([
      'warn nothing listens for SIGTERM: a stop of this process leaves its locks held until their ttl ends; call ' +
        'app.enableShutdownHooks()',
    ]);
  });

  it('is not warned of if it listens soon after its boot, or is no production', async () => {
    await start('test');
    await start('production');
    process.on('SIGTERM', onSignal);
    await clock.advance(60_000);
    expect(warnings()).toEqual([]);
  });

  it('leaves no timer if it ends before', async () => {
    const app = await start('production');
    await app.close();
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('Without the module', () => {
  it('a method of an object from a factory fails and never runs unlocked', async () => {
    const app = await boot({ providers: [{ provide: 'JOB', useFactory: () => new Job() }] });
    await expect(app.get<InstanceType<typeof Job>>('JOB').run()).rejects.toThrow(
      /^@WithLock on Job\.run has no LockService, so it does not run: .*import RedlockModule\.forRoot/,
    );
  });

  it('a method without its object fails and never runs unlocked', async () => {
    await boot({ imports: [locks.module()], providers: [Job] });
    const detached = Reflect.get(Job.prototype, 'run') as () => Promise<unknown>;
    await expect(detached()).rejects.toMatchObject({ code: 'LOCK_CONFIG' });
  });

  it('an object of a factory that names an unknown service fails', async () => {
    const Invoices = jobUnder('bill', { ttl: '5s', service: 'billing' });
    const app = await boot({
      imports: [locks.module()],
      providers: [{ provide: 'INVOICES', useFactory: () => new Invoices() }],
    });
    await expect(app.get<InstanceType<typeof Invoices>>('INVOICES').run()).rejects.toMatchObject({
      code: 'LOCK_CONFIG',
    });
  });
});

describe('enabled: false', () => {
  it.each([
    ['forRoot', RedlockModule.forRoot({ enabled: false })],
    ['forRootAsync', RedlockModule.forRootAsync({ useFactory: () => ({ enabled: false }) })],
  ])('of %s runs everything without locks and without masters, after one warning', async (_, redlock) => {
    @Controller()
    class Carts {
      constructor(
        readonly service: LockService,
        @Inject(Job) readonly job: InstanceType<typeof Job>,
      ) {}

      @Get()
      @UseInterceptors(LockInterceptor('cart'))
      async get(): Promise<unknown> {
        return this.job.run();
      }
    }
    const { app, url } = await listen({ imports: [redlock], controllers: [Carts], providers: [Job] });
    expect(logs.filter((line) => line.startsWith('warn'))).toEqual([
      'warn locking is disabled by `enabled: false`: everything runs without locks',
    ]);
    const service = app.get(LockService);
    await using first = await service.acquire('job');
    await using second = await service.acquire('job');
    expect([first.isHeld, second.isHeld]).toEqual([true, true]);
    expect(await (await fetch(url)).text()).toBe('false');
    await expect(service.withLock('a', '1s', () => 'done')).resolves.toBe('done');
  });

  it.each(['100ms', '5s'] as const)(
    'lets running work end at a shutdown, for drainTimeout: %s',
    async (drainTimeout) => {
      const clock = new ManualClock();
      const off = RedlockModule.forRoot({ masters: [], enabled: false, clock, drainTimeout });
      const app = await boot({ imports: [off] });
      const work = deferred();
      const run = outcomeOf(app.get(LockService).withLock('a', '1s', () => work.promise));
      await settle();
      const closing = app.close();
      await settle();
      await clock.advance(1_000);
      work.resolve();
      const isCut = drainTimeout === '100ms';
      expect(await run).toEqual(isCut ? expect.objectContaining({ cause: 'shutdown' }) : undefined);
      await closing;
    },
  );

  it('draws fencing tokens that grow, from the microseconds of the wall clock', async () => {
    const clock = new ManualClock();
    const app = await boot({ imports: [RedlockModule.forRoot({ masters: [], enabled: false, clock })] });
    const service = app.get(LockService);
    const microseconds = () => clock.read().wall * 1_000;
    /** The clock stands still meanwhile: a token that needs another attempt later counts as none. */
    const tokenOf = async (lock: Lock) => Promise.race([lock.fencingToken(), settle().then(() => NaN)]);

    const first = await service.acquire('a');
    // At the same time, because nothing is locked.
    const second = await service.acquire(['b', 'a']);
    const tokens = [await tokenOf(first), await tokenOf(second)] as const;
    expect(tokens[0]).toBeGreaterThanOrEqual(microseconds());
    expect(tokens[1]).toBeGreaterThan(tokens[0]);
    expect(await tokenOf(first)).toBe(tokens[0]);
    await first.release();
    await second.release();

    await clock.advance(1_000);
    await service.withLock('a', '1s', async (lock) => {
      await clock.advance(10_000);
      const token = await tokenOf(lock);
      expect(token).toBeGreaterThan(tokens[1]);
      expect(token).toBeGreaterThanOrEqual(microseconds() - 10_000_000);
    });
  });

  it('still checks the options of the module and of decorators', async () => {
    const disabled = (options: object) => RedlockModule.forRoot({ masters: [], enabled: false, ...options });
    await expect(boot({ imports: [disabled({ ttl: -1 })] })).rejects.toMatchObject({ option: 'ttl' });
    await expect(boot({ imports: [disabled({})], providers: [jobUnder('a', 9)] })).rejects.toMatchObject({
      option: '@WithLock on Job.run: ttl',
    });
  });
});
