import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  applyDecorators,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Header,
  HttpCode,
  Injectable,
  Param,
  Post,
  Query,
  SetMetadata,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { Cron } from '@nestjs/schedule';
import { LockInterceptor, LockService, WithLock } from 'nestjs-redlock';
import { memoryLockService } from 'nestjs-redlock/testing';
import { boot, closeAll, externally, listen, logs, refusalOf } from './support/applications.js';
import { Locks } from './support/locks.js';
import { Reflector } from '@nestjs/core';
import { ApiOperation, ApiResponse, DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { ADAPTERS } from './support/adapters.js';

describe('Handlers that Nest does not intercept', () => {
  const Locked = LockInterceptor('job');

  const bootWith = (...providers: NonNullable<Parameters<typeof boot>[0]['providers']>) =>
    boot({ imports: [new Locks().module()], providers });

  const messageOf = async (start: Promise<unknown>) => (await refusalOf(start)).message;

  describe('LockInterceptor on a method for which Nest runs no interceptors is refused at boot', () => {
    it('above its decorator, below it, and on its class', async () => {
      @Injectable()
      class Above {
        @UseInterceptors(Locked)
        @OnEvent('order.created')
        async run(): Promise<void> {}
      }
      @Injectable()
      class Below {
        @OnEvent('order.created')
        @UseInterceptors(Locked)
        async run(): Promise<void> {}
      }
      @Injectable()
      @UseInterceptors(Locked)
      class OnClass {
        other(): void {}

        @OnEvent('order.created')
        async run(): Promise<void> {}
      }
      const refusal = (where: string, method: string) =>
        `LockInterceptor on ${where} cannot lock a method under @OnEvent, for which Nest runs no interceptors: it would run ` +
        `without the lock. Write @WithLock(key, options) on the method instead, got "${method}"`;
      expect(await messageOf(bootWith(Above))).toBe(refusal('Above.run', 'Above.run'));
      expect(await messageOf(bootWith(Below))).toBe(refusal('Below.run', 'Below.run'));
      expect(await messageOf(bootWith(OnClass))).toBe(refusal('class OnClass', 'OnClass.run'));
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
      const controllers = [Carts, Others];
      const app = await boot({ imports: [new Locks().module()], controllers, providers: [Consumer] });
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

  const LockedOrder = WithLock((id: string) => `order:${id}`) as MethodDecorator;
  const RULES = [SetMetadata('role', 'admin'), UseGuards(SignedIn, HasRole), HttpCode(202), Header('x-kept', 'yes')];

  @Controller()
  class Orders {
    @applyDecorators(Get('above/:id'), ...RULES, LockedOrder)
    async above(@Param('id') id: string): Promise<unknown> {
      return { id, locked: locks.held };
    }

    @applyDecorators(LockedOrder, ...RULES, Get('below/:id'))
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

  const seen: unknown[] = [];
  const tagged = Symbol('tagged');
  const Tag = (): MethodDecorator => (_, __, descriptor) => {
    Object.assign(descriptor.value as object, { [tagged]: 'own' });
  };

  @Injectable()
  class Shop {
    readonly #secret = 'private';
    private readonly name = 'shop';

    @SetMetadata('above', 1)
    @WithLock(function (this: unknown, ...given: unknown[]) {
      seen.push(this, ...given);
      return 'shop';
    })
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

  it('keeps `this`, private fields, arguments and the result, and its key function has them, too', async () => {
    const app = await boot({ imports: [locks.module()], providers: [Shop] });
    await expect(app.get(Shop).sell('pen', 3)).resolves.toEqual({
      item: 'pen',
      amount: 3,
      name: 'shop',
      secret: 'private',
      held: true,
    });
    expect(seen).toEqual([app.get(Shop), 'pen', 3]);
  });
});

describe('An invalid key in a handler that another package runs', () => {
  /** What a key function reads that trusts a request. */
  const idOf = (context: ExecutionContext) => context.switchToHttp().getRequest<{ query: { id: string } }>().query.id;

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

  @Controller()
  class Orders {
    @Get('named')
    @UseInterceptors(LockInterceptor((context) => `order:${idOf(context)}`))
    named(): void {
      handled++;
    }

    @Get('careless')
    @UseInterceptors(LockInterceptor((context) => `order:${idOf(context).length}`))
    careless(): void {
      handled++;
    }

    @Get('decorated')
    @WithLock((id: string) => `order:${id}`)
    async decorated(@Query('id') _: string): Promise<void> {
      handled++;
    }
  }

  const MISSING =
    'key must not contain undefined: a value that the name is made of is missing (if the word is meant, write ' +
    'JSON.stringify(value)), got "order:undefined"';

  describe.each(ADAPTERS)('A request on $platform', ({ adapter }) => {
    it.each([
      [
        'gets 400, with a line at debug level',
        'named',
        { statusCode: 400, message: 'Bad Request' },
        `debug LockInterceptor on Orders.named: ${MISSING}. The client gets 400 Bad Request: if its request was complete, `,
      ],
      [
        'gets 500 if the key function throws an error of its own, which is logged as any other',
        'careless',
        { statusCode: 500, message: 'Internal server error' },
        'error Cannot read properties of undefined',
      ],
      [
        'gets 500 for an invalid key of @WithLock, whose method has other callers than requests',
        'decorated',
        { statusCode: 500, message: 'Internal Server Error' },
        `error @WithLock on Orders.decorated: ${MISSING}`,
      ],
    ])('%s', async (_, path, body, line) => {
      const { url } = await listen({ imports: [locks.module()], controllers: [Orders] }, adapter());
      logs.length = 0;
      const response = await fetch(`${url}/${path}`);
      expect(await response.json()).toEqual(body);
      expect(handled).toBe(0);
      expect(logs).toEqual([expect.stringContaining(line)]);
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

/** As the decorators of tracing libraries do it: metadata of the method stays reachable. */
const Traced: MethodDecorator = (_target, _name, descriptor) => {
  const method = descriptor.value as unknown as (...args: unknown[]) => unknown;
  const traced = new Proxy(method, {
    // Not by `Reflect.apply`, as some do it.
    apply: (target, self, args: unknown[]) => target.apply(self, args),
  });
  Object.assign(descriptor, { value: traced });
};

describe('LockInterceptor', () => {
  it('locks a handler for which a decorator has put a Proxy', async () => {
    const locks = new Locks();
    @Controller()
    class Carts {
      @Get()
      @UseInterceptors(LockInterceptor('cart'))
      @Traced
      async read(): Promise<string> {
        return locks.held ? 'locked' : 'not locked';
      }
    }
    const { url } = await listen({ imports: [locks.module()], controllers: [Carts] });
    expect(await (await fetch(url)).text()).toBe('locked');
  });

  it('locks a handler that is run by its own call, which does not wait for it', async () => {
    const ran: string[] = [];
    const inner: Promise<unknown>[] = [];
    let run: (id: number) => Promise<unknown> = () => Promise.reject(new Error('not made yet'));
    @Injectable()
    class Nodes {
      @UseInterceptors(LockInterceptor((context) => `node:${context.getArgByIndex<number>(0)}`))
      async run(id: number): Promise<void> {
        if (id === 1) inner.push(ended.then(() => run(2)));
        ran.push(`${id}`);
      }
    }
    const app = await boot({ imports: [new Locks().module()], providers: [Nodes] });
    run = externally(app, app.get(Nodes), 'bot');
    const outer = run(1);
    const ended = outer.then(() => undefined);
    await outer;
    await Promise.all(inner);
    expect(ran).toEqual(['1', '2']);
  });
});
