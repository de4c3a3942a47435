import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  applyDecorators,
  type CallHandler,
  Controller,
  Get,
  Injectable,
  type ModuleMetadata,
  type NestInterceptor,
  Scope,
  UseInterceptors,
} from '@nestjs/common';
import { APP_INTERCEPTOR } from '@nestjs/core';
import { MessagePattern } from '@nestjs/microservices';
import { Cron, ScheduleModule } from '@nestjs/schedule';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { LockInterceptor, LockService, WithLock } from 'nestjs-redlock';
import { Leader, RedlockLeaderModule } from 'nestjs-redlock/leader';
import { LockedCron, RedlockScheduleModule } from 'nestjs-redlock/schedule';
import { HANDLERS } from '../../lib/nest/handlers.js';
import { eventually } from '../support/eventually.js';
import { boot, listen, logs, refusalOf } from './support/applications.js';
import { EXAMPLES, fieldOf, graphql, resolving } from './support/handler-examples.js';
import { Locks } from './support/locks.js';

let ran = 0;
let intercepted = 0;
let locks: Locks;

beforeEach(() => {
  ran = intercepted = 0;
  locks = new Locks();
});

const run = (): void => {
  ran++;
};
const Locked = UseInterceptors(LockInterceptor('handler'));
const warnings = () => logs.filter((line) => line.startsWith('warn'));
const withLocks = ({ imports = [], ...others }: ModuleMetadata): ModuleMetadata => ({
  imports: [locks.module(), ...imports],
  ...others,
});

@Injectable()
class Recorder implements NestInterceptor {
  intercept(_: unknown, next: CallHandler) {
    intercepted++;
    return next.handle();
  }
}

it('Each kind of handler has an example', () => {
  expect(Object.keys(EXAMPLES)).toEqual(HANDLERS.map(({ what }) => what));
});

describe.each(HANDLERS)('LockInterceptor on $what', ({ what, fate }) => {
  const example = EXAMPLES[what]!;

  it(`is ${fate === 'locked' ? 'accepted' : 'refused'} at boot`, async () => {
    const start = () => boot(withLocks(example.make(Locked, run)));
    if (fate === 'locked') {
      await start();
      expect(warnings()).toEqual([]);
    } else {
      const { message } = await refusalOf(start);
      expect(message).toContain(`cannot lock ${what}, `);
      expect(message).toMatch(/^LockInterceptor on \w+\.\w+ cannot lock .* it would run without the lock\. Write @\w+/);
    }
  });
});

describe.each(HANDLERS.filter(({ what }) => EXAMPLES[what]?.call))('For $what', ({ what, fate }) => {
  it(`Nest runs ${fate === 'locked' ? 'interceptors' : 'none'}`, async () => {
    const { make, call } = EXAMPLES[what]!;
    await call!(make(UseInterceptors(Recorder), run));
    await eventually(() => ran > 0);
    expect(intercepted > 0).toBe(fate === 'locked');
  });
});

describe.each([
  ['@LockedCron', LockedCron('0 3 * * *', { name: 'job' })],
  ['@Leader', Leader('leader')],
])('%s on what something else calls', (decorator, decorate) => {
  const modules = [ScheduleModule.forRoot(), RedlockScheduleModule, RedlockLeaderModule];
  const metadataOf = (what: string, decorators: readonly MethodDecorator[]) => {
    const { imports = [], ...others } = EXAMPLES[what]!.make(applyDecorators(...decorators), run);
    const isOther = (each: unknown) => !(imports as readonly unknown[]).includes(each);
    return withLocks({ ...others, imports: [...imports, ...modules.filter(isOther)] });
  };
  const others = HANDLERS.map(({ what }) => what).filter((what) => !/@Locked|@Leader/.test(what));

  it.each(others)('is refused at boot: %s', async (what) => {
    const { message } = await refusalOf(() => boot(metadataOf(what, [decorate])));
    expect(message).toMatch(`${decorator} on `);
    expect(message).toMatch(` must not be ${what} as well, which runs it without the lock: write @WithLock`);
  });

  it('is accepted under @WithLock, too', async () => {
    const both = [WithLock('job') as MethodDecorator, decorate];
    await boot(metadataOf('a method under @OnEvent', both));
    expect(warnings()).toEqual([]);
  });
});

describe('LockInterceptor on a resolver of fields', () => {
  const on = { fieldResolverEnhancers: ['interceptors' as const] };

  it('locks, if their interceptors are on', async () => {
    let held: unknown;
    const resolver = fieldOf(Locked, () => (held = locks.held));
    const metadata = withLocks({ imports: [graphql(on)], providers: [resolver] });
    expect(await resolving('{ account { balance } }')(metadata)).toEqual({ data: { account: { balance: 5 } } });
    expect(held).toBe(true);
    expect(warnings()).toEqual([]);
  });

  it('boots with a warning, if they are on in one of several modules', async () => {
    const imports = [on, {}].map((useValue) => ({
      module: class GraphQL {
        readonly options = useValue;
      },
      providers: [{ provide: 'GqlModuleOptions', useValue }],
    }));
    await boot(withLocks({ imports, providers: [fieldOf(Locked, run)] }));
    expect(warnings()).toEqual([
      'warn LockInterceptor on Accounts.balance may not lock a method under @ResolveField or @ResolveReference, for which ' +
        "Nest runs interceptors only if GraphQLModule has fieldResolverEnhancers: ['interceptors'], and some do not. Write " +
        '@WithLock(key, options) on the method instead',
    ]);
  });
});

const unknown = (where: string, name: string) =>
  `warn LockInterceptor on ${where}: nothing shows that ${name} is a handler, and calls of other code run without the lock. ` +
  'Write @WithLock(key, options) on the method instead';

describe('LockInterceptor boots with a warning', () => {
  it('on a method of a controller that is no handler, and on a class without one', async () => {
    @Controller()
    class Carts {
      @Get()
      list(): void {}

      @Locked
      helper(): void {}
    }
    @Injectable()
    @Locked
    class Whole {
      run(): void {}
    }
    await boot(withLocks({ controllers: [Carts], providers: [Whole] }));
    expect(warnings()).toEqual([unknown('class Whole', 'Whole.run'), unknown('Carts.helper', 'Carts.helper')]);
  });

  it('on what is a handler elsewhere', async () => {
    @Injectable()
    class Service {
      @Get()
      @Locked
      route(): void {}

      @MessagePattern('x')
      @Locked
      message(): void {}

      @SubscribeMessage('x')
      @Locked
      socket(): void {}
    }
    await boot(withLocks({ providers: [Service] }));
    const names = ['Service.route', 'Service.message', 'Service.socket'];
    expect(warnings()).toEqual(names.map((name) => unknown(name, name)));
  });

  it('on a class, for what else is called in it', async () => {
    @WebSocketGateway()
    @UseInterceptors(LockInterceptor('room'))
    class Rooms {
      @SubscribeMessage('join')
      join(): void {}

      handleConnection(): void {}

      @WithLock('room')
      async handleDisconnect(): Promise<void> {}

      onModuleInit(): void {}

      helper(): void {}
    }
    await boot(withLocks({ providers: [Rooms] }));
    expect(warnings()).toEqual([
      'warn LockInterceptor on class Rooms does not lock Rooms.handleConnection, a hook of a gateway, for which Nest runs no ' +
        'interceptors. Write @WithLock(key, options) on the method instead, or the interceptor on the handlers, one by one',
    ]);
  });

  it('on a handler that is overridden without it', async () => {
    class Base {
      @Get('one')
      @Locked
      one(): void {}

      @Get('two')
      @Locked
      two(): void {}
    }
    @Controller()
    class Carts extends Base {
      @Get('one')
      override one(): void {}

      @Get('two')
      override two(): void {
        super.two();
      }
    }
    await boot(withLocks({ controllers: [Carts] }));
    expect(warnings()).toEqual([
      ...['one', 'two'].map(
        (name) =>
          `warn LockInterceptor on Base.${name}: Carts.${name} overrides it without the interceptor, and runs without the ` +
          `lock. Repeat it on Carts.${name}`,
      ),
    ]);
  });
});

describe('LockInterceptor on a method of a controller that its objects replace', () => {
  let held: unknown;
  const warning =
    'warn LockInterceptor on Carts.run: its objects have a function in its stead, without the interceptor, and Nest runs that ' +
    'without the lock. Remove what assigns this.run, such as this.run = this.run.bind(this)';

  class Base {
    @Get('run')
    @Locked
    run(): void {
      held = locks.held;
    }
  }
  @Controller()
  class Bound extends Base {
    constructor() {
      super();
      this.run = this.run.bind(this);
    }
  }
  @Controller({ scope: Scope.REQUEST })
  class BoundLater extends Base {
    constructor() {
      super();
      this.run = this.run.bind(this);
    }
  }
  @Controller()
  class Replaced extends Base {
    override run = (): void => {
      held = locks.held;
    };
  }

  it.each([
    ['by a bound one', Bound],
    ['by a bound one, for each request', BoundLater],
    ['by one of the same name', Replaced],
  ])('boots with a warning: %s', async (_, controller) => {
    const { url } = await listen(withLocks({ controllers: [controller] }));
    await fetch(`${url}/run`);
    expect(held).toBe(false);
    expect(warnings()).toEqual([warning.replaceAll('Carts', controller.name)]);
  });

  @Controller({ scope: Scope.REQUEST })
  class Inherited extends Base {}
  @Controller()
  @UseInterceptors(LockInterceptor('cart'))
  class OnClass extends Bound {}

  it.each([
    ['it is inherited, in a request scope, too', Inherited],
    ['the class has the interceptor', OnClass],
  ])('boots without one, and locks, if %s', async (_, controller) => {
    const { url } = await listen(withLocks({ controllers: [controller] }));
    expect((await fetch(`${url}/run`)).status).toBe(200);
    expect(held).toBe(true);
    expect(warnings()).toEqual([]);
  });
});

describe('LockInterceptor for all handlers', () => {
  const interceptor = LockInterceptor('all');

  @Injectable()
  class Jobs {
    @Cron('0 0 1 1 *')
    async run(): Promise<void> {}

    @Cron('0 0 1 1 *')
    @WithLock('job', { onLocked: 'skip', minHold: '1s' })
    async locked(): Promise<void> {}

    onModuleInit(): void {}
  }
  @Controller()
  class Carts {
    @Get('run')
    list(): void {}
  }
  @Controller()
  class Messages {
    @MessagePattern('x')
    receive(): void {}
  }

  const JOBS =
    'warn LockInterceptor for all handlers does not lock Jobs.run (a method under @Cron, @Interval or @Timeout), for which Nest ' +
    'runs no interceptors. Write @WithLock(key, options) on what needs the lock, or the interceptor on the handlers, one by one';
  const HYBRID =
    'warn LockInterceptor for all handlers locks those of messages only if connectMicroservice is given { inheritAppConfig: true ' +
    '}. Give it that, or write the interceptor on their classes';

  it.each([
    ['by a class', { provide: APP_INTERCEPTOR, useClass: interceptor }],
    [
      'by a factory',
      {
        provide: APP_INTERCEPTOR,
        useFactory: (service: LockService) => new interceptor(service),
        inject: [LockService],
      },
    ],
  ])('boots with a warning of what it does not lock: provided %s', async (_, provider) => {
    await boot(withLocks({ controllers: [Carts], providers: [Jobs, provider] }));
    expect(warnings()).toEqual([JOBS]);
  });

  it('boots with one if it is given to the application, and in a hybrid one', async () => {
    await listen(withLocks({ controllers: [Carts, Messages], providers: [Jobs] }), undefined, (app) =>
      app.useGlobalInterceptors(new interceptor(app.get(LockService))),
    );
    expect(warnings()).toEqual([JOBS, HYBRID]);
  });

  it('boots with one of gateways on a version of Nest that runs no interceptors of the application for them', async () => {
    @WebSocketGateway()
    class Chat {
      @SubscribeMessage('run')
      say(): object {
        run();
        return { event: 'done', data: 1 };
      }
    }
    const provider = { provide: APP_INTERCEPTOR, useClass: interceptor };
    await EXAMPLES['a handler of a gateway']!.call!({
      providers: [Chat, { provide: APP_INTERCEPTOR, useClass: Recorder }],
    });
    await eventually(() => ran > 0);
    const isLocked = intercepted > 0;
    await boot(withLocks({ providers: [Chat, provider] }));
    expect(warnings()).toEqual(
      isLocked
        ? []
        : [
            'warn LockInterceptor for all handlers does not lock those of gateways before Nest 12. Write the interceptor on their ' +
              'classes',
          ],
    );
  });

  it('boots without one where it locks all handlers', async () => {
    await listen(withLocks({ controllers: [Carts], providers: [{ provide: APP_INTERCEPTOR, useClass: interceptor }] }));
    expect(warnings()).toEqual([]);
  });
});
