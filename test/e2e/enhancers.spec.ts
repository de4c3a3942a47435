import { describe, expect, it } from '@jest/globals';
import {
  type ArgumentsHost,
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  Get,
  Injectable,
  type INestApplication,
  type MiddlewareConsumer,
  Module,
  type ModuleMetadata,
  type NestMiddleware,
  type PipeTransform,
  Scope,
  type Type,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
} from '@nestjs/common';
import { LazyModuleLoader, ModuleRef } from '@nestjs/core';
import { ScheduleModule } from '@nestjs/schedule';
import { LockInterceptor, WithLock } from 'nestjs-redlock';
import { Elections, Leader, type Leadership, RedlockLeaderModule } from 'nestjs-redlock/leader';
import { JobHistory, LockedInterval, RedlockScheduleModule } from 'nestjs-redlock/schedule';
import { ManualClock } from 'nestjs-redlock/testing';
import { listen, refusalOf } from './support/applications.js';
import { Locks } from './support/locks.js';

/** What an enhancer of each kind can be, and how it is given to a controller. */
class Methods implements CanActivate, PipeTransform, ExceptionFilter, NestMiddleware {
  readonly ran: string[] = [];

  canActivate(): boolean {
    return true;
  }

  intercept(_: unknown, next: { handle(): never }) {
    return next.handle();
  }

  transform(value: unknown): unknown {
    return value;
  }

  catch(error: unknown, _: ArgumentsHost): void {
    throw error;
  }

  use(_: unknown, __: unknown, next: () => void): void {
    next();
  }

  @LockedInterval('1s', { name: 'job' })
  async job(): Promise<void> {
    this.ran.push('job');
  }

  @Leader('election')
  async lead({ ended }: Leadership): Promise<void> {
    this.ran.push('election');
    await ended;
  }

  @WithLock('locked')
  async locked(): Promise<void> {
    this.ran.push('locked');
  }
}

let clock: ManualClock;

function listenWith(metadata: ModuleMetadata, prepare?: (app: INestApplication) => unknown) {
  clock = new ManualClock();
  const imports = [
    new Locks(3, { clock, drainTimeout: 0 }).module(),
    ScheduleModule.forRoot(),
    ...[RedlockScheduleModule, RedlockLeaderModule, ...(metadata.imports ?? [])],
  ];
  return listen({ ...metadata, imports }, undefined, prepare);
}

function decorated(decorator: ClassDecorator & MethodDecorator): Type {
  @Controller()
  @decorator
  class Carts {
    @Get('run')
    run(): string {
      return 'done';
    }
  }
  return Carts;
}

/** An application that makes one object of the class, or takes the one that it is given. */
const GIVEN: Record<string, (type: Type<Methods>) => ModuleMetadata> = {
  'a guard': (type) => ({ controllers: [decorated(UseGuards(type))] }),
  'an interceptor': (type) => ({ controllers: [decorated(UseInterceptors(type as never))] }),
  'a pipe': (type) => ({ controllers: [decorated(UsePipes(type))] }),
  'a filter': (type) => {
    Catch()(type);
    return { controllers: [decorated(UseFilters(type))] };
  },
  'a middleware': (type) => {
    @Module({})
    class Middle {
      configure(consumer: MiddlewareConsumer): void {
        consumer.apply(type).forRoutes('{*path}');
      }
    }
    return { imports: [Middle] };
  },
  'a guard that is an object': (type) => ({ controllers: [decorated(UseGuards(new type()))] }),
};

describe.each(Object.entries(GIVEN))('Of %s,', (_, metadataOf) => {
  it('jobs run, leaders lead, and methods lock', async () => {
    const made: Methods[] = [];
    @Injectable()
    class Enhancer extends Methods {
      constructor() {
        super();
        made.push(this);
      }
    }
    const { app } = await listenWith(metadataOf(Enhancer));
    const [enhancer] = made as [Methods];
    expect(made).toHaveLength(1);
    expect(app.get(Elections).isLeader('election')).toBe(false);
    await clock.advance(3_000);
    await enhancer.locked();
    expect(new Set(enhancer.ran)).toEqual(new Set(['job', 'election', 'locked']));
    expect(await app.get(JobHistory).list()).toMatchObject([{ name: 'job' }]);
  });

  it('options are checked at boot', async () => {
    class Base extends Methods {
      @WithLock('locked', { ttl: '2h' })
      override async locked(): Promise<void> {}
    }
    const { message } = await refusalOf(() => listenWith(metadataOf(Base)));
    expect(message).toContain('@WithLock on Base.locked: ttl is 7200000 ms');
  });

  it('LockInterceptor is refused', async () => {
    class Enhancer extends Methods {
      @UseInterceptors(LockInterceptor('enhancer'))
      override canActivate(): boolean {
        return true;
      }
    }
    const { message } = await refusalOf(() => listenWith(metadataOf(Enhancer)));
    expect(message).toContain('LockInterceptor on Enhancer.canActivate cannot lock a guard, an interceptor, a pipe,');
  });
});

it('The jobs of a guard that is given to the application run', async () => {
  const guard = new Methods();
  await listenWith({}, (app) => app.useGlobalGuards(guard));
  await clock.advance(3_000);
  expect(guard.ran).toContain('job');
});

it.each<[string, Scope, string]>([
  ['of two modules that each have one', Scope.DEFAULT, 'is its class a provider or an enhancer of several modules'],
  ['that is made for each request', Scope.REQUEST, 'needs a singleton: remove the scope of the class'],
])('A guard %s is refused for its jobs', async (_, scope, advice) => {
  @Injectable({ scope })
  class Guard extends Methods {}
  @Module({ controllers: [decorated(UseGuards(Guard))] })
  class One {}
  @Module({ controllers: [decorated(UseGuards(Guard))] })
  class Another {}
  const { message } = await refusalOf(() => listenWith({ imports: [One, Another] }));
  expect(message).toContain(advice);
});

describe('What Nest makes after the boot', () => {
  @Injectable()
  class Report {
    @LockedInterval('1s', { name: 'late' })
    async run(): Promise<void> {}
  }
  @Injectable()
  class Wrong {
    @WithLock('late', { ttl: '2h' })
    async run(): Promise<void> {}
  }
  @Injectable()
  class Right {
    @WithLock('late')
    async run(): Promise<string> {
      return 'done';
    }
  }
  const LATE =
    '@LockedInterval on Report.run must belong to an object that the application has at boot, or nothing runs the job: list its ' +
    'class in `providers` of a module that is not loaded later';

  it.each([
    ['a module that is loaded later', (type: Type, app: INestApplication) => load(type, app)],
    ['moduleRef.create', (type: Type, app: INestApplication) => app.get(ModuleRef).create(type)],
  ])('is refused for its jobs and for invalid options, and locks: %s', async (_, make) => {
    const { app } = await listenWith({});
    for (let times = 0; times < 2; times++) {
      expect((await refusalOf(() => make(Report, app))).message).toContain(LATE);
      expect((await refusalOf(() => make(Wrong, app))).message).toContain('@WithLock on Wrong.run: ttl is 7200000 ms');
    }
    const right = (await make(Right, app)) as Right;
    await expect(right.run()).resolves.toBe('done');
  });

  async function load(type: Type, app: INestApplication): Promise<unknown> {
    @Module({ providers: [type] })
    class Late {}
    const module = await app.get(LazyModuleLoader).load(() => Late);
    return module.get(type);
  }
});

it('An object that Nest makes during the boot, and that is no provider, is refused for its jobs', async () => {
  @Injectable()
  class Report {
    @LockedInterval('1s', { name: 'early' })
    async run(): Promise<void> {}
  }
  const provider = {
    provide: 'REPORT',
    useFactory: async (modules: ModuleRef) => ({ report: await modules.create(Report) }),
    inject: [ModuleRef],
  };
  const { message } = await refusalOf(() => listenWith({ providers: [provider] }));
  expect(message).toContain('@LockedInterval on Report.run must belong to an object that the application has at boot');
});
