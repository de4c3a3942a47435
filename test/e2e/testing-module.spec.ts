import { describe, expect, it } from '@jest/globals';
import { Controller, Get, Inject, Injectable, Module, UseInterceptors } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  getLockServiceToken,
  InjectLockService,
  LockInterceptor,
  LockService,
  RedlockModule,
  WithLock,
} from 'nestjs-redlock';
import { ManualClock, memoryLockService, memoryMasters, RedlockTestingModule } from 'nestjs-redlock/testing';
import { boot, closeLater, compile, listen, logs } from './support/applications.js';
import { deferred } from './support/deferred.js';
import { jobUnder } from './support/locks.js';

@Injectable()
class Orders {
  constructor(
    readonly byClass: LockService,
    @InjectLockService() readonly byToken: LockService,
  ) {}

  @WithLock('order', { ttl: '10s', wait: 0 })
  async ship(): Promise<readonly string[] | undefined> {
    return this.byClass.current()?.resources;
  }
}

/** They inject no lock service: only their decorators need one. */
const Decorated = jobUnder('order', { ttl: '10s', wait: 0 }, async () => 'shipped');
const Billing = jobUnder('bill', { ttl: '10s', service: 'billing', wait: 0 }, async () => 'billed');

@Controller()
class Carts {
  @Get()
  @UseInterceptors(LockInterceptor('cart', { ttl: '10s', wait: 0 }))
  checkOut(): string {
    return 'done';
  }
}

/** Nothing listens on this port, so every attempt to connect fails. */
const UNREACHABLE = { masters: ['redis://127.0.0.1:1'], connectTimeout: 500 };

@Module({ imports: [RedlockModule.forRoot(UNREACHABLE)], providers: [Orders], controllers: [Carts] })
class AppModule {}

describe('The testing module', () => {
  const NOT_ACQUIRED = expect.objectContaining({ code: 'LOCK_NOT_ACQUIRED' });

  describe('RedlockTestingModule', () => {
    it('serves decorators and injection in a module that is compiled and never initialized', async () => {
      const module = await compile({ imports: [RedlockTestingModule.forRoot()], providers: [Orders, Decorated] });
      const [orders, decorated] = [module.get(Orders), module.get(Decorated)];
      expect(orders.byToken).toBe(orders.byClass);
      await expect(orders.ship()).resolves.toEqual(['order']);

      await using _ = await module.get(LockService).acquire('order');
      await expect(orders.ship()).rejects.toEqual(NOT_ACQUIRED);
      await expect(decorated.run()).rejects.toEqual(NOT_ACQUIRED);
    });

    it('serves interceptors', async () => {
      const { app, url } = await listen({ imports: [RedlockTestingModule.forRoot()], controllers: [Carts] });
      expect((await fetch(url)).status).toBe(200);
      await using _ = await app.get(LockService).acquire('cart');
      expect((await fetch(url)).status).toBe(423);
    });

    it('serves objects from factories once the module is initialized', async () => {
      const factory = { provide: 'ORDERS', useFactory: () => new Decorated() };
      const app = await boot({ imports: [RedlockTestingModule.forRoot()], providers: [factory] });
      await expect(app.get<InstanceType<typeof Decorated>>('ORDERS').run()).resolves.toBe('shipped');
    });

    it('takes the place of the lock service of an application, which opens no connection', async () => {
      const masters = memoryMasters();
      const app = await boot({ imports: [AppModule, RedlockTestingModule.forRoot({ masters })] });
      await expect(app.get(Orders).ship()).resolves.toEqual(['order']);
      await using _ = await memoryLockService({ masters }).acquire('order');
      await expect(app.get(Orders).ship()).rejects.toEqual(NOT_ACQUIRED);
    });

    it('takes the place of a service with options from a factory, and of one that is not global', async () => {
      const useFactory = async () => UNREACHABLE;
      @Module({ imports: [RedlockModule.forRootAsync({ useFactory, isGlobal: false })], providers: [Orders] })
      class Feature {}
      const app = await boot({ imports: [RedlockTestingModule.forRoot(), Feature] });
      await expect(app.get(Orders).ship()).resolves.toEqual(['order']);
      expect(app.get(Orders).byClass).toBe(app.get(LockService));
    });

    it('warns at boot, because an application that imports it by mistake would run', async () => {
      await boot({ imports: [AppModule, RedlockTestingModule.forRoot()] });
      expect(logs).toContain(
        'warn locks are in the memory of this process and exclude no other process: for tests only',
      );
    });

    it('can replace the result of forRoot by overrideModule', async () => {
      const redlock = RedlockModule.forRoot(UNREACHABLE);
      @Module({ imports: [redlock], providers: [Orders] })
      class Feature {}
      const testing = Test.createTestingModule({ imports: [Feature] });
      const module = await testing.overrideModule(redlock).useModule(RedlockTestingModule.forRoot()).compile();
      await expect(closeLater(module).get(Orders).ship()).resolves.toEqual(['order']);
    });

    it('serves named services, each by an import of its own', async () => {
      const imports = [
        RedlockModule.forRoot({ ...UNREACHABLE, name: 'billing' }),
        RedlockTestingModule.forRoot({ name: 'billing' }),
        RedlockTestingModule.forRoot(),
      ];
      const app = await boot({ imports, providers: [Billing, Orders] });
      const billing = app.get<LockService>(getLockServiceToken('billing'));
      await using _ = await billing.acquire(['bill', 'order']);
      await expect(app.get(Billing).run()).rejects.toEqual(NOT_ACQUIRED);
      await expect(app.get(Orders).ship()).resolves.toEqual(['order']);
    });

    it('leaves a service with another name to its own module', async () => {
      const imports = [RedlockModule.forRoot({ ...UNREACHABLE, name: 'billing' }), RedlockTestingModule.forRoot()];
      await expect(compile({ imports })).rejects.toMatchObject({ code: 'QUORUM_UNAVAILABLE' });
    });

    it('gives each application a service of its own, unless they share masters', async () => {
      const own = RedlockTestingModule.forRoot();
      const shared = RedlockTestingModule.forRoot({ masters: memoryMasters(3) });
      const tries = async (module: typeof own) => {
        const services = [await boot({ imports: [module] }), await boot({ imports: [module] })].map((app) =>
          app.get(LockService),
        );
        return Promise.all(services.map((locks) => locks.tryAcquire('a')));
      };
      expect(await tries(own)).not.toContain(null);
      expect(await tries(shared)).toContain(null);
    });

    it('refuses unknown and invalid options, those for the memory at boot', async () => {
      const refusal = (option: string) => expect.objectContaining({ option });
      expect(() => RedlockTestingModule.forRoot({ mastres: [] } as object)).toThrow(
        refusal('RedlockTestingModule.forRoot'),
      );
      expect(() => RedlockTestingModule.forRoot({ name: '' })).toThrow(refusal('name'));
      expect(() => memoryLockService({ master: [] } as object)).toThrow(refusal('memoryLockService'));
      for (const options of [{ ttl: '1 minute' }, { masters: [] }, { clock: null }] as object[]) {
        const module = RedlockTestingModule.forRoot(options);
        await expect(boot({ imports: [module] })).rejects.toEqual(refusal(Object.keys(options).join()));
      }
    });

    it('must be imported by forRoot, and the error of Nest says so', async () => {
      await expect(boot({ imports: [RedlockTestingModule] })).rejects.toThrow(
        'import RedlockTestingModule.forRoot(), and not RedlockTestingModule itself',
      );
    });

    it('closes at once even if masters are paused, a method still runs, and the clock stands still', async () => {
      const clock = new ManualClock();
      const masters = memoryMasters(3, clock);
      const work = deferred();
      const Job = jobUnder('job', '10s', () => work.promise);
      const app = await boot({ imports: [RedlockTestingModule.forRoot({ clock, masters })], providers: [Job] });
      const running = app.get(Job).run();
      await clock.settle();
      for (const master of masters) master.pause();
      await app.close();
      work.resolve();
      await expect(running).rejects.toMatchObject({ code: 'LOCK_LOST', cause: 'shutdown' });
    });
  });

  describe('A mock instead of the lock service', () => {
    const REMEDY =
      /cannot lock with a mock instead of the LockService.*RedlockTestingModule\.forRoot\(\).*memoryLockService/;

    it.each<[string, (token: unknown) => unknown]>([
      ['an empty object', () => ({})],
      ['an object with all methods', () => ({ hold: () => undefined, check: () => undefined })],
      [
        'a proxy that has every property',
        () => new Proxy({}, { get: (_, name) => (name === 'then' ? undefined : () => undefined) }),
      ],
    ])('from useMocker, %s, fails the call with the remedy', async (_, mocker) => {
      const testing = Test.createTestingModule({ providers: [Decorated] }).useMocker(mocker as () => object);
      const module = closeLater(await testing.compile());
      await expect(module.get(Decorated).run()).rejects.toThrow(REMEDY);
    });

    it.each([
      ['RedlockTestingModule', RedlockTestingModule.forRoot()],
      ['RedlockModule', RedlockModule.forRoot({ masters: 'memory' })],
    ])('does not replace the service of a %s', async (_, redlock) => {
      const testing = Test.createTestingModule({ imports: [redlock], providers: [Needy] });
      const module = closeLater(await testing.useMocker(() => ({ mock: true })).compile());
      await expect(module.get(Needy).ship()).resolves.toBe('shipped');
      expect(module.get(Needy).mailer).toEqual({ mock: true });
    });
  });

  @Injectable()
  class Needy {
    constructor(@Inject('MAILER') readonly mailer: object) {}

    @WithLock('order', { ttl: '10s', wait: 0 })
    async ship(): Promise<string> {
      return 'shipped';
    }
  }
});

describe('A lock service that a test puts instead of the real one', () => {
  it('is injected and locks methods and handlers, and no connection is opened', async () => {
    const locks = memoryLockService();
    const testing = Test.createTestingModule({ imports: [AppModule] })
      .overrideProvider(LockService)
      .useValue(locks);
    const app = closeLater((await testing.compile()).createNestApplication());
    app.useLogger(false);
    await app.listen(0, '127.0.0.1');

    const orders = app.get(Orders);
    expect([orders.byClass, orders.byToken]).toEqual([locks, locks]);
    await expect(orders.ship()).resolves.toEqual(['order']);
    expect((await fetch(await app.getUrl())).status).toBe(200);

    await using _ = await locks.acquire(['order', 'cart']);
    await expect(orders.ship()).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
    expect((await fetch(await app.getUrl())).status).toBe(423);
  });

  it('can have a name', async () => {
    const locks = memoryLockService();
    const testing = Test.createTestingModule({
      imports: [RedlockModule.forRoot({ ...UNREACHABLE, name: 'billing' })],
      providers: [Billing],
    });
    const app = await testing.overrideProvider(getLockServiceToken('billing')).useValue(locks).compile();
    await closeLater(app).init();
    await expect(app.get(Billing).run()).resolves.toBe('billed');
    await using _ = await locks.acquire('bill');
    await expect(app.get(Billing).run()).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
  });

  it.each<[string, object, string]>([
    ['methods', { providers: [Orders] }, '@WithLock on Orders.ship'],
    ['handlers', { controllers: [Carts] }, 'LockInterceptor'],
  ])('cannot be a stub where it has to lock %s', async (_, metadata, where) => {
    const testing = Test.createTestingModule({ imports: [RedlockModule.forRoot(UNREACHABLE)], ...metadata });
    const stub = { acquire: async () => undefined };
    const boot = async () => (await testing.overrideProvider(LockService).useValue(stub).compile()).init();
    await expect(boot()).rejects.toMatchObject({
      name: 'RedlockConfigError',
      option: expect.stringContaining(where),
    });
  });

  it('may be a stub where only its methods are called', async () => {
    const testing = Test.createTestingModule({ imports: [RedlockModule.forRoot(UNREACHABLE)] });
    const stub = { tryAcquire: async () => null };
    const app = await testing.overrideProvider(LockService).useValue(stub).compile();
    await closeLater(app).init();
    await expect(app.get(LockService).tryAcquire('a')).resolves.toBeNull();
  });
});
