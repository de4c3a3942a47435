import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  Controller,
  forwardRef,
  Get,
  Global,
  Inject,
  Injectable,
  Module,
  type ModuleMetadata,
  type OnApplicationBootstrap,
  type OnModuleInit,
  type Provider,
  Scope,
  type Type,
} from '@nestjs/common';
import { ContextIdFactory, LazyModuleLoader, ModuleRef } from '@nestjs/core';
import type { TestingModule } from '@nestjs/testing';
import { getLockServiceToken, InjectLockService, LockService, WithLock } from 'nestjs-redlock';
import { boot, listen } from './support/applications.js';
import { jobUnder, Locks } from './support/locks.js';

let locks: Locks;

beforeEach(() => {
  locks = new Locks();
});

/** A job that returns whether it ran under a lock. */
abstract class AnyJob {
  @WithLock('job')
  async run(): Promise<boolean> {
    return locks.held;
  }
}

@Injectable()
class Job extends AnyJob {}

async function expectLocked(job: { run(): Promise<unknown> }): Promise<void> {
  await expect(job.run()).resolves.toBe(true);
  await locks.expectNothingLeft();
}

describe('@WithLock locks a method of', () => {
  @Module({ providers: [Job], exports: [Job] })
  class JobsModule {}
  @Module({})
  class JobModule extends AnyJob {}

  it.each<[string, ModuleMetadata, (app: TestingModule) => unknown]>([
    ['a provider', { providers: [Job] }, (app) => app.get(Job)],
    [
      'an object whose method is taken from the prototype, as resolvers are called',
      { providers: [Job] },
      (app) => ({ run: () => Reflect.apply(Reflect.get(Job.prototype, 'run'), app.get(Job), []) as unknown }),
    ],
    ['a provider of another module, by the global service', { imports: [JobsModule] }, (app) => app.get(Job)],
    ['a module class', { imports: [JobModule] }, (app) => app.get(JobModule)],
    ['an object that ModuleRef.create builds', {}, (app) => app.get(ModuleRef).create(Job)],
    [
      'a class in a module that is loaded lazily',
      {},
      async (app) => (await app.get(LazyModuleLoader).load(() => JobsModule)).get(Job),
    ],
  ])('%s', async (_, { imports = [], ...metadata }, jobOf) => {
    const app = await boot({ imports: [locks.module(), ...imports], ...metadata });
    await expectLocked((await jobOf(app)) as Job);
  });

  it('a request-scoped controller', async () => {
    @Controller({ scope: Scope.REQUEST })
    class Reports {
      @WithLock('report')
      @Get()
      async report(): Promise<boolean> {
        return locks.held;
      }
    }
    const { url } = await listen({ imports: [locks.module()], controllers: [Reports] });
    const responses = await Promise.all([fetch(url), fetch(url)]);
    expect(await Promise.all(responses.map((response) => response.text()))).toEqual(['true', 'true']);
  });

  it.each([
    ['request-scoped', { scope: Scope.REQUEST }],
    ['transient', { scope: Scope.TRANSIENT }],
    ['durable', { scope: Scope.REQUEST, durable: true }],
  ])('a %s provider', async (_, options) => {
    @Injectable(options)
    class ScopedJob extends AnyJob {}
    const app = await boot({ imports: [locks.module()], providers: [ScopedJob] });
    const first = await app.resolve(ScopedJob, ContextIdFactory.create());
    const second = await app.resolve(ScopedJob, ContextIdFactory.create());
    expect(first).not.toBe(second);
    await expectLocked(first);
    await expectLocked(second);
  });

  it('a provider in its own lifecycle hooks', async () => {
    const seen: boolean[] = [];
    @Injectable()
    class Hooked extends AnyJob implements OnModuleInit, OnApplicationBootstrap {
      async onModuleInit(): Promise<void> {
        seen.push(await this.run());
      }

      async onApplicationBootstrap(): Promise<void> {
        seen.push(await this.run());
      }
    }
    await boot({ imports: [locks.module()], providers: [Hooked] });
    expect(seen).toEqual([true, true]);
  });

  it('providers that refer to each other by forwardRef', async () => {
    @Injectable()
    class Left extends AnyJob {
      constructor(@Inject(forwardRef(() => RIGHT)) readonly right: AnyJob) {
        super();
      }
    }
    @Injectable()
    class Right extends AnyJob {
      constructor(@Inject(forwardRef(() => Left)) readonly left: AnyJob) {
        super();
      }
    }
    const RIGHT = Right;
    const app = await boot({ imports: [locks.module()], providers: [Left, Right] });
    await expectLocked(app.get(Left).right);
    await expectLocked(app.get(Right).left);
  });
});

describe('@WithLock locks a method of an object that Nest did not build from its class', () => {
  @Injectable({ scope: Scope.REQUEST })
  class Tenant {}
  @Injectable({ scope: Scope.REQUEST })
  class ScopedJob extends AnyJob {}

  it.each<[string, object, Type[]?]>([
    ['useValue', { useValue: new Job() }],
    ['useFactory', { useFactory: () => new Job() }],
    ['an asynchronous useFactory', { useFactory: async () => Promise.resolve(new Job()) }],
    ['useClass under another token', { useClass: Job }],
    ['useExisting', { useExisting: Job }, [Job]],
    ['useExisting of a request-scoped class', { useExisting: ScopedJob }, [ScopedJob]],
    ['useFactory that depends on a request', { inject: [Tenant], useFactory: () => new Job() }, [Tenant]],
  ])('%s', async (_, provider, others = []) => {
    const providers = [...others, { provide: 'JOB', ...provider } as Provider];
    const app = await boot({ imports: [locks.module()], providers });
    await expectLocked(await app.resolve('JOB'));
  });

  it('useFactory with a transient scope, injected at boot and resolved later', async () => {
    @Injectable()
    class Owner {
      constructor(@Inject('JOB') readonly job: Job) {}
    }
    const app = await boot({
      imports: [locks.module()],
      providers: [Owner, { provide: 'JOB', scope: Scope.TRANSIENT, useFactory: () => new Job() }],
    });
    await expectLocked(app.get(Owner).job);
    const later = await app.resolve<Job>('JOB');
    expect(later).not.toBe(app.get(Owner).job);
    await expectLocked(later);
  });
});

describe('@WithLock and inheritance', () => {
  class Base {
    @WithLock('base')
    async inherited(): Promise<boolean> {
      return locks.held;
    }

    @WithLock('base')
    async overridden(): Promise<boolean> {
      return locks.held;
    }

    @WithLock('base')
    async extended(): Promise<boolean> {
      return locks.held;
    }
  }

  @Injectable()
  class Plain extends Base {
    override async overridden(): Promise<boolean> {
      return locks.held;
    }

    override async extended(): Promise<boolean> {
      return super.extended();
    }
  }

  @Injectable()
  class Decorated extends Base {
    @Inject(LockService) readonly field!: LockService;

    @WithLock('sub')
    override async overridden(): Promise<boolean> {
      return locks.held;
    }

    @WithLock('sub')
    override async extended(): Promise<boolean> {
      return super.extended();
    }
  }

  it('locks inherited methods, and an override by its own decorator or by that of the method that it calls', async () => {
    const app = await boot({ imports: [locks.module()], providers: [Plain, Decorated] });
    const [plain, decorated] = [app.get(Plain), app.get(Decorated)];
    await expect(plain.inherited()).resolves.toBe(true);
    await expect(plain.overridden()).resolves.toBe(false);
    await expect(plain.extended()).resolves.toBe(true);
    for (const method of ['inherited', 'overridden', 'extended'] as const) {
      await expect(decorated[method]()).resolves.toBe(true);
    }
    await locks.expectNothingLeft();
    expect(decorated.field).toBe(app.get(LockService));
  });
});

it('An object under @WithLock gets no enumerable property, and keeps its own fields', async () => {
  @Injectable()
  class Busy extends AnyJob {
    readonly locks = 'mine';
    readonly lockService = 'mine, too';
  }
  const app = await boot({ imports: [locks.module()], providers: [Busy] });
  expect(Object.assign({}, app.get(Busy))).toStrictEqual({ locks: 'mine', lockService: 'mine, too' });
  await expectLocked(app.get(Busy));
});

describe('Several applications and services in one process', () => {
  it('are separate: each application locks on its own masters', async () => {
    const [here, there] = [new Locks(), new Locks()];
    @Injectable()
    class Where {
      @WithLock('where')
      async run(): Promise<[boolean, boolean]> {
        return [here.held, there.held];
      }
    }
    const first = await boot({ imports: [here.module()], providers: [Where] });
    const second = await boot({ imports: [there.module()], providers: [Where] });
    await expect(first.get(Where).run()).resolves.toEqual([true, false]);
    await expect(second.get(Where).run()).resolves.toEqual([false, true]);
    await first.close();
    await expect(second.get(Where).run()).resolves.toEqual([false, true]);
  });

  it('are distinguished by name: in the decorator, by injection, and for objects of factories', async () => {
    const [main, billing] = [new Locks(), new Locks(1, { name: 'billing' })];
    class Invoices {
      @WithLock('main')
      async onMain(): Promise<[boolean, boolean]> {
        return [main.held, billing.held];
      }

      @WithLock('bill', { ttl: '5s', service: 'billing' })
      async onBilling(): Promise<[boolean, boolean]> {
        return [main.held, billing.held];
      }
    }
    @Injectable()
    class InvoicesOfNest extends Invoices {
      constructor(
        readonly locks: LockService,
        @InjectLockService() readonly same: LockService,
        @InjectLockService('billing') readonly billing: LockService,
      ) {
        super();
      }
    }
    const app = await boot({
      imports: [main.module(), billing.module()],
      providers: [InvoicesOfNest, { provide: 'MADE', useFactory: () => new Invoices() }],
    });
    const invoices = app.get(InvoicesOfNest);
    expect(invoices.same).toBe(invoices.locks);
    expect(invoices.billing).not.toBe(invoices.locks);
    expect(invoices.billing).toBe(app.get(getLockServiceToken('billing')));
    for (const host of [invoices, app.get<Invoices>('MADE')]) {
      await expect(host.onMain()).resolves.toEqual([true, false]);
      await expect(host.onBilling()).resolves.toEqual([false, true]);
    }
  });

  it('work without a service that has no name', async () => {
    locks = new Locks(1, { name: 'only' });
    const Named = jobUnder('n', { service: 'only' }, async () => locks.held);
    const app = await boot({ imports: [locks.module()], providers: [Named] });
    await expectLocked(app.get(Named));
  });
});

it('A module that does not import a lock service with isGlobal: false cannot boot, and one that imports it can', async () => {
  @Module({ providers: [Job], exports: [Job] })
  class FeatureModule {}
  locks = new Locks(1, { isGlobal: false });
  const redlock = locks.module();
  await expect(boot({ imports: [redlock, FeatureModule] })).rejects.toThrow(
    /Job.*LockService of nestjs-redlock: import RedlockModule.forRoot/,
  );
  @Global()
  @Module({ imports: [redlock], providers: [Job], exports: [Job] })
  class ImportingModule {}
  const app = await boot({ imports: [redlock, ImportingModule] });
  await expectLocked(app.get(Job));
});
