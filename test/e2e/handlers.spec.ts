import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  applyDecorators,
  Body,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Header,
  HttpCode,
  Injectable,
  Param,
  Post,
  SetMetadata,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { EventPattern } from '@nestjs/microservices';
import { Cron, Interval, ScheduleModule, Timeout } from '@nestjs/schedule';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { LockInterceptor, LockService, WithLock } from 'nestjs-redlock';
import { Leader, RedlockLeaderModule } from 'nestjs-redlock/leader';
import { LockedInterval, RedlockScheduleModule } from 'nestjs-redlock/schedule';
import { memoryLockService } from 'nestjs-redlock/testing';
import { boot, closeAll, externally, listen, logs, refusalOf } from './support/applications.js';
import { Locks } from './support/locks.js';
import { Reflector } from '@nestjs/core';
import { ApiOperation, ApiResponse, DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { ADAPTERS } from './support/adapters.js';

describe('Handlers that Nest does not intercept', () => {
  afterEach(closeAll);

  const Locked = LockInterceptor('job');

  const bootWith = (...providers: NonNullable<Parameters<typeof boot>[0]['providers']>) =>
    boot({ imports: [new Locks().module()], providers });

  const messageOf = async (start: Promise<unknown>) => (await refusalOf(start)).message;

  /** The metadata that @Processor of @nestjs/bullmq sets on a class. */
  const Processor = (name: string) => SetMetadata('bullmq:processor_metadata', { name });

  const refusal = (where: string, caller: string, method: string) =>
    `LockInterceptor on ${where} cannot lock ${caller}, for which Nest runs no interceptors: it would run ` +
    `without the lock. Write @WithLock(key, options) on the method instead, got "${method}"`;

  describe('LockInterceptor on a method for which Nest runs no interceptors is refused at boot', () => {
    it.each<[string, MethodDecorator, string]>([
      ['@Cron', Cron('0 0 1 1 *'), 'a method under @Cron, @Interval or @Timeout'],
      ['@Interval', Interval(60_000), 'a method under @Cron, @Interval or @Timeout'],
      ['@Timeout', Timeout(60_000), 'a method under @Cron, @Interval or @Timeout'],
      ['@OnEvent', OnEvent('order.created'), 'a method under @OnEvent'],
      ['@Process', SetMetadata('bull:module_queue_process', {}), 'a method under @Process'],
      ['@OnWorkerEvent', SetMetadata('bullmq:worker_events_metadata', {}), 'a method under @OnWorkerEvent'],
      ['@OnQueueEvent', SetMetadata('bullmq:queue_events_metadata', {}), 'a method under @OnQueueEvent'],
    ])('%s', async (_, decorator, caller) => {
      @Injectable()
      class Above {
        @UseInterceptors(Locked)
        @decorator
        async run(): Promise<void> {}
      }
      @Injectable()
      class Below {
        @decorator
        @UseInterceptors(Locked)
        async run(): Promise<void> {}
      }
      @Injectable()
      class OnClass {
        other(): void {}

        @decorator
        async run(): Promise<void> {}
      }
      UseInterceptors(Locked)(OnClass);

      expect(await messageOf(bootWith(Above))).toBe(refusal('Above.run', caller, 'Above.run'));
      expect(await messageOf(bootWith(Below))).toBe(refusal('Below.run', caller, 'Below.run'));
      expect(await messageOf(bootWith(OnClass))).toBe(refusal('class OnClass', caller, 'OnClass.run'));
    });

    it('the process method of a BullMQ processor', async () => {
      @Processor('mails')
      class Mails {
        @UseInterceptors(Locked)
        async process(): Promise<void> {}
      }
      @Processor('letters')
      @UseInterceptors(Locked)
      class Letters {
        async process(): Promise<void> {}
      }
      expect(await messageOf(bootWith(Mails))).toBe(
        refusal('Mails.process', 'a method under @Processor', 'Mails.process'),
      );
      expect(await messageOf(bootWith(Letters))).toBe(
        refusal('class Letters', 'a method under @Processor', 'Letters.process'),
      );
    });

    it('a method of this package, and a hook', async () => {
      @Injectable()
      class Job {
        @LockedInterval('1h', { name: 'x' })
        @UseInterceptors(Locked)
        async run(): Promise<void> {}
      }
      @Injectable()
      class Reign {
        @UseInterceptors(Locked)
        @Leader('x')
        async lead(): Promise<void> {}
      }
      @Injectable()
      class Hooks {
        @UseInterceptors(Locked)
        onModuleInit(): void {}
      }
      const job = boot({
        imports: [new Locks().module(), ScheduleModule.forRoot(), RedlockScheduleModule],
        providers: [Job],
      });
      expect(await messageOf(job)).toBe(refusal('Job.run', 'a method under @LockedInterval', 'Job.run'));
      const reign = boot({ imports: [new Locks().module(), RedlockLeaderModule], providers: [Reign] });
      expect(await messageOf(reign)).toBe(refusal('Reign.lead', 'a method under @Leader', 'Reign.lead'));
      expect(await messageOf(bootWith(Hooks))).toBe(refusal('Hooks.onModuleInit', 'a hook', 'Hooks.onModuleInit'));
    });

    it('a method that is a route as well, of which only half of the calls would be locked', async () => {
      @Controller()
      class Reports {
        @Get()
        @Cron('0 0 1 1 *')
        @UseInterceptors(Locked)
        async run(): Promise<void> {}
      }
      const start = boot({ imports: [new Locks().module()], controllers: [Reports] });
      expect(await messageOf(start)).toContain('LockInterceptor on Reports.run cannot lock a method under @Cron');
    });

    it('wherever the object and the interceptor come from', async () => {
      class Base {
        @Cron('0 0 1 1 *')
        @UseInterceptors(new Locked(memoryLockService()))
        async run(): Promise<void> {}
      }
      @Injectable()
      class Derived extends Base {}
      expect(await messageOf(bootWith(Derived))).toContain('on Derived.run');
      expect(await messageOf(bootWith({ provide: 'JOB', useFactory: () => new Derived() }))).toContain(
        'on Derived.run',
      );
      expect(await messageOf(bootWith({ provide: 'JOB', useValue: new Base() }))).toContain('on Base.run');
    });
  });

  it('LockInterceptor on what nothing shows to be a handler boots with a warning', async () => {
    @Injectable()
    class Service {
      @UseInterceptors(Locked)
      async run(): Promise<void> {}
    }
    @Injectable()
    @UseInterceptors(Locked)
    class Whole {
      async run(): Promise<void> {}
    }
    await bootWith(Service, Whole);
    const advice = 'and calls of other code run without the lock. Write @WithLock(key, options) on the method instead';
    expect(logs.filter((line) => line.startsWith('warn'))).toEqual([
      `warn LockInterceptor on Service.run: nothing shows that Service.run is a handler, ${advice}`,
      `warn LockInterceptor on class Whole: nothing shows that Whole.run is a handler, ${advice}`,
    ]);
  });

  describe('LockInterceptor stays allowed', () => {
    it('where something else in the class may be a handler, and beside a scheduled method without it', async () => {
      @Controller()
      @UseInterceptors(Locked)
      class Carts {
        @Get()
        list(): void {}

        @Cron('0 0 1 1 *')
        async cleanUp(): Promise<void> {}
      }
      @Controller()
      @UseInterceptors(Locked)
      class Messages {
        @EventPattern('cart')
        onMessage(_: unknown): void {}

        @OnEvent('cart')
        onEvent(): void {}
      }
      @WebSocketGateway()
      @UseInterceptors(Locked)
      class Rooms {
        @SubscribeMessage('join')
        join(): void {}

        @OnEvent('room.closed')
        notify(): void {}
      }
      // Some package may wrap this method with interceptors.
      @Injectable()
      @UseInterceptors(Locked)
      class Consumer {
        @SetMetadata('RABBIT_HANDLER', { queue: 'orders' })
        onMessage(): void {}

        @UseInterceptors(Locked)
        @Reflect.metadata('REGISTERED', true)
        onOther(): void {}

        @Cron('0 0 1 1 *')
        async cleanUp(): Promise<void> {}
      }
      @Controller('other')
      class Others {
        @Get()
        @UseInterceptors(Locked)
        list(): void {}

        @Cron('0 0 1 1 *')
        @UseInterceptors({ intercept: (_, next) => next.handle() })
        @WithLock('cart')
        async cleanUp(): Promise<void> {}
      }
      const controllers = [Carts, Messages, Others];
      const app = await boot({ imports: [new Locks().module()], controllers, providers: [Rooms, Consumer] });
      expect(app.get(LockService).status().canVote).toBe(true);
    });

    it('beside providers that are not instances of a class', async () => {
      const bare = Object.create(null) as object;
      const app = await bootWith(
        { provide: 'BARE', useValue: bare },
        { provide: 'WITHOUT_CLASS', useValue: Object.create({ constructor: 5, run: () => undefined }) as object },
        { provide: 'PLAIN', useValue: { run: () => undefined } },
        { provide: 'FUNCTION', useValue: () => undefined },
        { provide: 'NOTHING', useValue: undefined },
        { provide: 'PROXY', useValue: new Proxy({}, { get: () => () => undefined }) },
      );
      expect(app.get('BARE')).toBe(bare);
    });
  });
});

describe('The decorated method', () => {
  let locks: Locks;

  beforeEach(() => {
    locks = new Locks();
  });
  afterEach(closeAll);

  @Injectable()
  class SignedIn implements CanActivate {
    canActivate(context: ExecutionContext): boolean {
      return context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers['authorization'] === 'me';
    }
  }

  @Injectable()
  class HasRole implements CanActivate {
    constructor(private readonly reflector: Reflector) {}

    canActivate(context: ExecutionContext): boolean {
      return this.reflector.get<string | undefined>('role', context.getHandler()) === 'admin';
    }
  }

  @Controller()
  class Orders {
    @SetMetadata('role', 'admin')
    @WithLock((id: string) => `order:${id}`)
    @UseGuards(SignedIn, HasRole)
    @HttpCode(202)
    @Header('x-kept', 'yes')
    @Get('above/:id')
    async above(@Param('id') id: string): Promise<unknown> {
      return { id, locked: locks.held };
    }

    @Get('below/:id')
    @Header('x-kept', 'yes')
    @HttpCode(202)
    @UseGuards(SignedIn, HasRole)
    @WithLock((id: string) => `order:${id}`)
    @SetMetadata('role', 'admin')
    async below(@Param('id') id: string): Promise<unknown> {
      return { id, locked: locks.held };
    }

    @ApiOperation({ summary: 'documented above' })
    @ApiResponse({ status: 201, description: 'shipped above' })
    @WithLock('doc')
    @Post('doc-above')
    async docAbove(): Promise<void> {}

    @Post('doc-below')
    @WithLock('doc')
    @ApiResponse({ status: 201, description: 'shipped below' })
    @ApiOperation({ summary: 'documented below' })
    async docBelow(): Promise<void> {}
  }

  describe.each(ADAPTERS)('on $platform', ({ adapter }) => {
    const start = () => listen({ imports: [locks.module()], controllers: [Orders] }, adapter());

    it.each(['above', 'below'])(
      'keeps guards, route, parameters, status and headers with @WithLock %s them',
      async (order) => {
        const { url } = await start();
        const anonymous = await fetch(`${url}/${order}/42`);
        expect(anonymous.status).toBe(403);
        await locks.expectNothingLeft();
        const response = await fetch(`${url}/${order}/42`, { headers: { authorization: 'me' } });
        expect(response.status).toBe(202);
        expect(response.headers.get('x-kept')).toBe('yes');
        expect(await response.json()).toEqual({ id: '42', locked: true });
        await locks.expectNothingLeft();
      },
    );

    it('keeps the Swagger documentation above and below it', async () => {
      const { app } = await start();
      const { paths } = SwaggerModule.createDocument(app, new DocumentBuilder().build());
      expect(paths['/doc-above']?.post).toMatchObject({
        summary: 'documented above',
        responses: { 201: { description: 'shipped above' } },
      });
      expect(paths['/doc-below']?.post).toMatchObject({
        summary: 'documented below',
        responses: { 201: { description: 'shipped below' } },
      });
    });
  });

  const tagged = Symbol('tagged');
  const Tag = (): MethodDecorator => (_, __, descriptor) => {
    Object.assign(descriptor.value as object, { [tagged]: 'own' });
  };

  @Injectable()
  class Shop {
    readonly #secret = 'private';
    private readonly name = 'shop';

    @SetMetadata('above', 1)
    @WithLock('shop')
    @SetMetadata('below', 2)
    @Tag()
    async sell(item: string, amount: number): Promise<unknown> {
      return { item, amount, name: this.name, secret: this.#secret, held: locks.held };
    }
  }

  const sell = Reflect.get(Shop.prototype, 'sell') as (...args: unknown[]) => unknown;

  it('keeps its name, length, own properties and metadata', () => {
    expect(sell.name).toBe('sell');
    expect(sell).toHaveLength(2);
    expect(Reflect.get(sell, tagged)).toBe('own');
    expect(Reflect.getMetadata('above', sell)).toBe(1);
    expect(Reflect.getMetadata('below', sell)).toBe(2);
    expect(Reflect.getMetadata('design:paramtypes', Shop.prototype, 'sell')).toEqual([String, Number]);
    expect(Object.keys(Object.getOwnPropertyDescriptors(Shop.prototype))).toEqual(['constructor', 'sell']);
  });

  it('keeps `this`, private fields, arguments and the result', async () => {
    const app = await boot({ imports: [locks.module()], providers: [Shop] });
    await expect(app.get(Shop).sell('pen', 3)).resolves.toEqual({
      item: 'pen',
      amount: 3,
      name: 'shop',
      secret: 'private',
      held: true,
    });
  });

  it('may be named by a symbol, and composes with applyDecorators', async () => {
    const method = Symbol('method');
    const Locked = (key: string) => applyDecorators(SetMetadata('composed', key), WithLock(key));
    @Injectable()
    class Composed {
      @Locked('composed')
      async [method](): Promise<boolean> {
        return locks.held;
      }
    }
    const app = await boot({ imports: [locks.module()], providers: [Composed] });
    await expect(app.get(Composed)[method]()).resolves.toBe(true);
    expect(Reflect.getMetadata('composed', Reflect.get(Composed.prototype, method) as object)).toBe('composed');
  });

  it('passes the arguments and `this` to its key function', async () => {
    const seen: unknown[] = [];
    @Injectable()
    class Keys {
      readonly prefix = 'mine';

      @WithLock(function (this: unknown, id: string, count: number) {
        seen.push(this, id, count);
        return id;
      })
      async run(id: string, count: number): Promise<string> {
        return `${id}${count}`;
      }
    }
    const app = await boot({ imports: [locks.module()], providers: [Keys] });
    await expect(app.get(Keys).run('a', 1)).resolves.toBe('a1');
    expect(seen).toEqual([app.get(Keys), 'a', 1]);
  });
});

describe('An invalid key in a handler that another package runs', () => {
  interface Request {
    readonly body: { readonly order?: { readonly id?: unknown } };
  }

  const bodyOf = (context: ExecutionContext) => context.switchToHttp().getRequest<Request>().body;

  /** What a key function gives that trusts a request. */
  const trusted = (value: unknown): string => value as string;

  let locks: Locks;
  let handled: number;

  beforeEach(() => {
    locks = new Locks();
    handled = 0;
  });
  afterEach(async () => {
    await closeAll();
    await locks.expectNothingLeft();
  });

  @Controller('orders')
  class Orders {
    @Post('named')
    @UseInterceptors(LockInterceptor((context) => `order:${trusted(bodyOf(context).order?.id)}`))
    named(): void {
      handled++;
    }

    @Post('bare')
    @UseInterceptors(LockInterceptor((context) => trusted(bodyOf(context).order?.id)))
    bare(): void {
      handled++;
    }

    @Post('careless')
    @UseInterceptors(
      LockInterceptor((context) => `order:${trusted((bodyOf(context) as Required<Request['body']>).order.id)}`),
    )
    careless(): void {
      handled++;
    }

    @Post('decorated')
    @WithLock((body: Request['body']) => `order:${trusted(body.order?.id)}`)
    async decorated(@Body() _: Request['body']): Promise<void> {
      handled++;
    }
  }

  describe.each(ADAPTERS)('A request on $platform', ({ adapter }) => {
    async function post(path: string, body: unknown) {
      const { url } = await listen({ imports: [locks.module()], controllers: [Orders] }, adapter());
      logs.length = 0;
      const response = await fetch(`${url}/orders/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      const text = await response.text();
      return { status: response.status, body: text === '' ? undefined : (JSON.parse(text) as unknown) };
    }

    it.each([
      ['lacks a field', 'named', {}, 'must not contain undefined: a value that the name is made of is missing'],
      ['has an empty key', 'bare', { order: { id: '' } }, 'must be a non-empty string or a non-empty array of them'],
      ['has half a character', 'named', { order: { id: '\ud800' } }, 'must not contain half a surrogate pair'],
    ])('that %s gets 400, with a line at debug level', async (_, path, body, requirement) => {
      expect(await post(path, body)).toEqual({ status: 400, body: { statusCode: 400, message: 'Bad Request' } });
      expect(handled).toBe(0);
      expect(logs).toEqual([expect.stringContaining(`debug LockInterceptor on Orders.${path}: key ${requirement}`)]);
      expect(logs[0]).toMatch(
        /\. The client gets 400 Bad Request: if its request was complete, check what the key function reads$/,
      );
    });

    it('with all fields runs', async () => {
      expect(await post('named', { order: { id: '7' } })).toMatchObject({ status: 201 });
      expect(handled).toBe(1);
    });

    it('gets 500 if the key function throws an error of its own, which is logged as any other', async () => {
      expect(await post('careless', {})).toMatchObject({ status: 500 });
      expect(logs).toEqual([expect.stringMatching(/^error Cannot read properties of undefined/)]);
    });

    it('gets 500 for an invalid key of @WithLock, whose method has other callers than requests', async () => {
      expect(await post('decorated', {})).toMatchObject({ status: 500 });
      expect(handled).toBe(0);
      expect(logs).toEqual([
        'error @WithLock on Orders.decorated: key must not contain undefined: a value that the name is made of is ' +
          'missing (if the word is meant, write JSON.stringify(value)), got "order:undefined"',
      ]);
    });
  });

  it.each([
    ['graphql', 'BadRequestException'],
    ['queue', 'RedlockConfigError'],
    ['http', 'RedlockConfigError'],
  ])('fails a handler of the type %s with %s', async (type, name) => {
    @Injectable()
    @UseInterceptors(LockInterceptor((context) => `job:${context.getArgByIndex<string>(0)}`))
    class Jobs {
      readonly run = async (...ids: unknown[]): Promise<unknown> => Promise.resolve(ids);
    }
    const app = await boot({ imports: [locks.module()], providers: [Jobs] });
    await expect(externally(app, app.get(Jobs), type)(undefined)).rejects.toMatchObject({ name });
  });
});
