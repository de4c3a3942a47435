import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Injectable, type Type, UseInterceptors } from '@nestjs/common';
import { Cron, Interval } from '@nestjs/schedule';
import { type Duration, LockInterceptor, LockService, RedlockModule, WithLock } from 'nestjs-redlock';
import { of } from 'rxjs';
import { boot, closeAll, logs } from './support/applications.js';

/** What a caller without types could write. */
const untyped = (value: unknown): never => value as never;
const untypedWithLock = WithLock as (...args: unknown[]) => MethodDecorator;
const untypedInterceptor = LockInterceptor as (...args: unknown[]) => Type;

const memory = () => RedlockModule.forRoot({ masters: 'memory' });
const root = (options: unknown) => () => boot({ imports: [RedlockModule.forRoot(untyped(options))] });
const rootAsync = (options: object) => () => boot({ imports: [RedlockModule.forRootAsync(untyped(options))] });

/** Boots an application with a method `run` that has this decorator. */
/** A job under a schedule that nothing runs, because its module is not imported. */
const scheduled = (schedule: MethodDecorator, minHold: Duration) => (): Promise<unknown> => {
  @Injectable()
  class Orders {
    @WithLock('a', { onLocked: 'skip', minHold })
    @schedule
    async run(): Promise<void> {}
  }
  return boot({ imports: [memory()], providers: [Orders] });
};
const method =
  (...args: unknown[]) =>
  () => {
    @Injectable()
    class Orders {
      async run(): Promise<void> {}
    }
    decorate(Orders.prototype, 'run', untypedWithLock(...args));
    return boot({ imports: [memory()], providers: [Orders] });
  };

/** Calls a locked method that contains a mistake. */
const call =
  (key: unknown, run: (this: { run(): unknown }, ...args: unknown[]) => unknown, ...args: unknown[]) =>
  async () => {
    @Injectable()
    class Orders {
      readonly own = this;

      run(...given: unknown[]): unknown {
        return run.apply(this, given);
      }
    }
    decorate(Orders.prototype, 'run', untypedWithLock(key));
    const app = await boot({ imports: [memory()], providers: [Orders] });
    return app.get(Orders).run(...args);
  };

/** Boots an application with a handler that has this interceptor. */
const handler =
  (interceptor: () => unknown, imports = [memory()]) =>
  () => {
    @Controller()
    class Carts {
      @Get()
      @UseInterceptors(untyped(interceptor()))
      get(): void {}
    }
    return boot({ imports, controllers: [Carts] });
  };

const service = (use: (locks: LockService) => unknown) => async () =>
  use((await boot({ imports: [memory()] })).get(LockService));

function decorate(target: object, name: string, decorator: MethodDecorator): void {
  const descriptor = Object.getOwnPropertyDescriptor(target, name) as PropertyDescriptor;
  const changed = decorator(target, name, descriptor);
  Object.defineProperty(target, name, changed ?? descriptor);
}

@Injectable()
class Plain {
  @WithLock('a')
  async run(): Promise<void> {}
}

@Injectable()
class Billing {
  @WithLock('a', { service: 'billing' })
  async run(): Promise<void> {}
}

class Shapes {
  static async fixed(): Promise<void> {}

  get value(): Promise<void> {
    return Promise.resolve();
  }

  async *stream(): AsyncGenerator<number> {
    yield 1;
  }
}

@Injectable()
class Sync {
  @Interval(60_000)
  @UseInterceptors(LockInterceptor('sync'))
  async run(): Promise<void> {}
}

interface Mistake {
  readonly mistake: string;
  readonly make: () => unknown;
  /** The first line of what the user sees. */
  readonly text: string;
}

const MISTAKES: readonly Mistake[] = [
  {
    mistake: 'no options',
    make: root(undefined),
    text: 'RedlockConfigError: options must be a list of masters, or an object with `masters`, got undefined',
  },
  {
    mistake: 'options without masters',
    make: root({}),
    text: "RedlockConfigError: masters must be a list of at least one master, or 'memory', got undefined",
  },
  {
    mistake: 'an empty list of masters',
    make: root([]),
    text: "RedlockConfigError: masters must be a list of at least one master, or 'memory', got []",
  },
  {
    mistake: 'an empty environment variable',
    make: root(''.split(',')),
    text: 'RedlockConfigError: masters[0] must be a redis:// or rediss:// URL and not empty: an environment variable may be missing, got ""',
  },
  {
    mistake: 'a missing environment variable',
    make: root([undefined]),
    text: 'RedlockConfigError: masters[0] must be a redis:// or rediss:// URL, the path of a unix socket, ioredis options or an ioredis client, got undefined',
  },
  {
    mistake: 'one string in place of the list',
    make: root('redis://a:6379'),
    text: 'RedlockConfigError: options must be a list of masters, or an object with `masters`; one address goes into a list, such as [url], got "redis://a:6379"',
  },
  {
    mistake: 'one string as masters',
    make: root({ masters: 'redis://a:6379' }),
    text: `RedlockConfigError: masters must be a list of at least one master, or 'memory'; one address goes into a list, such as [url], got "redis://a:6379"`,
  },
  {
    mistake: 'a comma list as masters',
    make: root({ masters: 'redis://:hunter2@a:6379,redis://:hunter2@b:6379' }),
    text: `RedlockConfigError: masters must be a list of at least one master, or 'memory'; split a list of addresses at its commas, .split(','), got "redis://***"`,
  },
  {
    mistake: 'a comma list in one string',
    make: root(['redis://a:6379,redis://b:6379']),
    text: `RedlockConfigError: masters[0] must be one address: split a list of them at its commas, .split(','), got "redis://a:6379,redis://b:6379"`,
  },
  {
    mistake: 'a comma list without schemes',
    make: root(['a:6379,b:6379']),
    text: `RedlockConfigError: masters[0] must be one address: split a list of them at its commas, .split(','), got "a:6379,b:6379"`,
  },
  {
    mistake: 'an address without a scheme',
    make: root(['localhost:6379']),
    text: 'RedlockConfigError: masters[0] must begin with redis:// or rediss://, as in redis://localhost:6379, or be the path of a unix socket, got "localhost:6379"',
  },
  {
    mistake: 'an IP address without a scheme',
    make: root(['127.0.0.1:6379']),
    text: 'RedlockConfigError: masters[0] must begin with redis:// or rediss://, as in redis://localhost:6379, or be the path of a unix socket, got "127.0.0.1:6379"',
  },
  {
    mistake: 'the name of a container without a scheme',
    make: root(['redis:6379']),
    text: 'RedlockConfigError: masters[0] must begin with redis:// or rediss://, as in redis://localhost:6379, or be the path of a unix socket, got "redis:6379"',
  },
  {
    mistake: "'memory' in a list",
    make: root(['memory']),
    text: `RedlockConfigError: masters[0] must be an address: 'memory' stands in place of the whole list, { masters: 'memory' }, got "memory"`,
  },
  {
    mistake: 'a URL of another protocol',
    make: root(['http://a:6379']),
    text: 'RedlockConfigError: masters[0] must begin with redis:// or rediss://, as in redis://localhost:6379, or be the path of a unix socket, got "http://a:6379"',
  },
  {
    mistake: 'a port that no server has',
    make: root(['redis://a:99999']),
    text: 'RedlockConfigError: masters[0] must have a port from 1 to 65535, got "redis://a:99999"',
  },
  {
    mistake: 'a database that no server has',
    make: root(['redis://a:6379/-1']),
    text: 'RedlockConfigError: masters[0] must have the number of a database as its path, as in redis://localhost:6379/0, or no path, got "redis://a:6379/-1"',
  },
  {
    mistake: 'the same master twice',
    make: root(['redis://a:6379', 'redis://b:6379', 'redis://A:6379/1']),
    text: 'RedlockConfigError: masters[2] must be another server than masters[0]: one server has one vote, got "a:6379"',
  },
  {
    mistake: 'an option that is called servers elsewhere',
    make: root({ servers: ['redis://a:6379'] }),
    text: 'RedlockConfigError: options may hold known options only (did you mean masters?), got "servers"',
  },
  {
    mistake: 'the address as an option of the module',
    make: root({ host: 'a', port: 6379 }),
    text: 'RedlockConfigError: options may hold known options only (did you mean masters?), got "host"',
  },
  {
    mistake: 'an option of another library',
    make: root({ masters: 'memory', retryCount: 3 }),
    text: `RedlockConfigError: options may hold known options only (wait: '5s' bounds the time of all attempts), got "retryCount"`,
  },
  {
    mistake: 'the pause between attempts, of another library',
    make: root({ masters: 'memory', retryDelay: 200 }),
    text: `RedlockConfigError: options may hold known options only (wait: '5s' bounds the time of all attempts), got "retryDelay"`,
  },
  {
    mistake: 'a misspelt option of the module',
    make: root({ masters: 'memory', keyprefix: 'app:' }),
    text: 'RedlockConfigError: options may hold known options only (did you mean keyPrefix?), got "keyprefix"',
  },
  {
    mistake: 'a factory that returns a list',
    make: rootAsync({ useFactory: () => ['redis://a:6379'] }),
    text: 'RedlockConfigError: options must be an object with `masters`, also as the result of a factory, got an array of 1',
  },
  {
    mistake: 'a factory that returns nothing',
    make: rootAsync({ useFactory: () => undefined }),
    text: 'RedlockConfigError: options must be an object with `masters`, also as the result of a factory, got undefined',
  },
  {
    mistake: 'a factory that returns the name',
    make: rootAsync({ useFactory: () => ({ masters: 'memory', name: 'billing' }) }),
    text: 'RedlockConfigError: name belongs beside useFactory, not into what it gives, got "billing"',
  },
  {
    mistake: 'forRootAsync with the options of forRoot',
    make: rootAsync({ masters: 'memory' }),
    text: 'RedlockConfigError: forRootAsync needs useFactory, useClass or useExisting: the options themselves go to forRoot, got an object (Object)',
  },
  {
    mistake: 'RedlockModule without forRoot',
    make: () => boot({ imports: [RedlockModule] }),
    text: "Error: Nest can't resolve dependencies of the RedlockModule (?, LockExplorer). Please make sure that the argument Symbol(nestjs-redlock: import RedlockModule.forRoot(...) once, in the root module, and never RedlockModule itself) at index [0] is available in the RedlockModule module.",
  },
  {
    mistake: 'no module, below @WithLock',
    make: () => boot({ providers: [Plain] }),
    text: `Error: Nest can't resolve dependencies of the Plain. Please make sure that the "Symbol(LockService of nestjs-redlock: import RedlockModule.forRoot(...), in a test RedlockTestingModule.forRoot() of nestjs-redlock/testing)" property is available in the current context.`,
  },
  {
    mistake: 'no module, below LockInterceptor',
    make: handler(() => LockInterceptor('cart'), []),
    text: "Error: Nest can't resolve dependencies of the LockInterceptor (?). Please make sure that the argument Symbol(LockService of nestjs-redlock: import RedlockModule.forRoot(...), in a test RedlockTestingModule.forRoot() of nestjs-redlock/testing) at index [0] is available in the RootTestModule module.",
  },
  {
    mistake: 'a named service that does not exist',
    make: () => boot({ imports: [memory()], providers: [Billing] }),
    text: `Error: Nest can't resolve dependencies of the Billing. Please make sure that the "Symbol(LockService "billing" of nestjs-redlock: import RedlockModule.forRoot({ name: 'billing', ... }), in a test RedlockTestingModule.forRoot({ name: 'billing' }) of nestjs-redlock/testing)" property is available in the current context.`,
  },
  {
    mistake: 'two services without a name',
    make: () => boot({ imports: [memory(), memory()] }),
    text: 'RedlockConfigError: name must be different for each lock service of one application: give each RedlockModule.forRoot() another name, or import the result of a single one, got undefined',
  },
  {
    mistake: "masters: 'memory' in production",
    make: async () => {
      const { NODE_ENV } = process.env;
      process.env.NODE_ENV = 'production';
      try {
        await root({ masters: 'memory' })();
      } finally {
        process.env.NODE_ENV = NODE_ENV;
      }
    },
    text: "warn masters: 'memory' with NODE_ENV=production: locks are within this process only and exclude no other one; give the addresses of Redis servers",
  },
  {
    mistake: "masters: 'memory' in a test",
    make: root({ masters: 'memory' }),
    text: '',
  },
  {
    mistake: 'enabled: false',
    make: root({ enabled: false, masters: [] }),
    text: 'warn locking is disabled by `enabled: false`: everything runs without locks',
  },
  {
    mistake: "enabled: 'false', from the environment",
    make: root({ masters: 'memory', enabled: 'false' }),
    text: 'RedlockConfigError: enabled must be true or false, got "false"',
  },
  {
    mistake: '@WithLock without parentheses',
    make: () => {
      decorate(Shapes.prototype, 'stream', untyped(WithLock));
    },
    text: 'RedlockConfigError: @WithLock needs parentheses and a key: @WithLock(key), got "stream"',
  },
  {
    mistake: '@WithLock without a key',
    make: method(),
    text: 'RedlockConfigError: @WithLock on Orders.run: key must be a non-empty string or a non-empty array of them, got undefined',
  },
  {
    mistake: '@WithLock on a class',
    make: () => (untypedWithLock('a') as unknown as ClassDecorator)(Shapes),
    text: 'RedlockConfigError: @WithLock on Shapes needs a method that returns a promise, got "a class"',
  },
  {
    mistake: '@WithLock on a static method',
    make: () => {
      decorate(Shapes, 'fixed', untypedWithLock('a'));
    },
    text: 'RedlockConfigError: @WithLock on Shapes.fixed needs a method that returns a promise, got "a static method"',
  },
  {
    mistake: '@WithLock on an accessor',
    make: () => {
      decorate(Shapes.prototype, 'value', untypedWithLock('a'));
    },
    text: 'RedlockConfigError: @WithLock on Shapes.value needs a method that returns a promise, got "an accessor or a property"',
  },
  {
    mistake: '@WithLock on a generator',
    make: () => {
      decorate(Shapes.prototype, 'stream', untypedWithLock('a'));
    },
    text: 'RedlockConfigError: @WithLock on Shapes.stream needs a method that returns a promise, got "a generator"',
  },
  {
    mistake: '@WithLock on a method that returns an Observable',
    make: call('a', () => of(1)),
    text: 'RedlockConfigError: @WithLock on Orders.run cannot lock what runs after the method has returned: use LockInterceptor, got an object (Observable)',
  },
  {
    mistake: 'a plain object without Nest',
    make: () => new Plain().run(),
    text: 'RedlockConfigError: @WithLock on Plain.run has no LockService, so it does not run: let Nest create the object, import RedlockModule.forRoot(), and call the method no earlier than onApplicationBootstrap if a factory made the object. In a test, wrap an object that Nest did not create: withLocks(object) of nestjs-redlock/testing, got an object (Plain)',
  },
  {
    mistake: 'a template in a string',
    make: method('order:{id}'),
    text: 'RedlockConfigError: @WithLock on Orders.run: key must not contain {id}, which nothing replaces: write a function, such as (id: string) => `order:${id}`, got "order:{id}"',
  },
  {
    mistake: 'a template literal in quotes',
    make: method('order:${id}'),
    text: 'RedlockConfigError: @WithLock on Orders.run: key must not contain ${id}, which nothing replaces: write a function, such as (id: string) => `order:${id}`, got "order:${id}"',
  },
  {
    mistake: 'a key of a missing argument',
    make: call(
      (id: unknown) => `order:${id as string}`,
      () => undefined,
    ),
    text: 'RedlockConfigError: @WithLock on Orders.run: key must not contain undefined: a value that the name is made of is missing, got "order:undefined"',
  },
  {
    mistake: 'a key of an object',
    make: call(
      (order: unknown) => `order:${order as string}`,
      () => undefined,
      {},
    ),
    text: 'RedlockConfigError: @WithLock on Orders.run: key must not contain [object Object]: name one of its properties, got "order:[object Object]"',
  },
  {
    mistake: 'a key function that returns nothing',
    make: call(
      () => undefined,
      () => undefined,
    ),
    text: 'RedlockConfigError: @WithLock on Orders.run: key must be a non-empty string or a non-empty array of them, got undefined',
  },
  {
    mistake: 'a key function that is async',
    make: call(
      async () => Promise.resolve('order'),
      () => undefined,
    ),
    text: 'RedlockConfigError: @WithLock on Orders.run: key must be a non-empty string or a non-empty array of them, got an object (Promise)',
  },
  {
    mistake: 'a nested lock',
    make: call('a', async function () {
      await this.run();
    }),
    text: 'LockReentryError: this call chain already holds "a": the nested call for "a" would wait for itself. Pass `reentrant: true` to run it inside the lock that is held',
  },
  {
    mistake: 'three arguments',
    make: method('a', '10s', { wait: '2s' }),
    text: "RedlockConfigError: @WithLock takes a key and options, and no third argument: write { ttl: '10s', wait: '2s' }, got an object (Object)",
  },
  {
    mistake: 'options in place of the ttl',
    make: method('a', { ttl: { ttl: '10s' } }),
    text: "RedlockConfigError: @WithLock on Orders.run: ttl must be a whole number of milliseconds, or a string like '250ms', '10s', '5m' or '1h', got an object (Object)",
  },
  {
    mistake: 'ttl 10, meant in seconds',
    make: method('a', 10),
    text: "warn @WithLock on Orders.run: ttl is 10 ms: were seconds meant? Then write '10s'",
  },
  {
    mistake: 'ttl 20 of each call, meant in seconds',
    make: service(async (locks) => {
      await locks.withLock('a', { ttl: 20 }, () => 1);
      await (await locks.acquire('a', 20)).release();
    }),
    text: "warn ttl is 20 ms: were seconds meant? Then write '20s'",
  },
  {
    mistake: 'minHold that is not shorter than the period of a cron job',
    make: scheduled(Cron('*/5 * * * * *'), '30s'),
    text: 'warn @WithLock on Orders.run: minHold is 30000 ms, and its schedule is due every 5000 ms: the ticks in between are skipped. Give a minHold that is shorter than the period',
  },
  {
    mistake: 'minHold that is not shorter than an interval',
    make: scheduled(Interval(1_000), 1_000),
    text: 'warn @WithLock on Orders.run: minHold is 1000 ms, and its schedule is due every 1000 ms: the ticks in between are skipped. Give a minHold that is shorter than the period',
  },
  {
    mistake: 'ttl 5, meant in seconds',
    make: method('a', 5),
    text: 'RedlockConfigError: @WithLock on Orders.run: ttl must be from 10 to 2147483647 ms, got 5',
  },
  {
    mistake: "ttl '10'",
    make: method('a', '10'),
    text: `RedlockConfigError: @WithLock on Orders.run: ttl must be a whole number of milliseconds, or a string like '250ms', '10s', '5m' or '1h', got "10"`,
  },
  {
    mistake: "ttl '10 seconds'",
    make: method('a', '10 seconds'),
    text: `RedlockConfigError: @WithLock on Orders.run: ttl must be a whole number of milliseconds, or a string like '250ms', '10s', '5m' or '1h', got "10 seconds"`,
  },
  {
    mistake: 'a ttl that is not a number',
    make: method('a', NaN),
    text: "RedlockConfigError: @WithLock on Orders.run: ttl must be a whole number of milliseconds, or a string like '250ms', '10s', '5m' or '1h', got NaN",
  },
  {
    mistake: 'a negative ttl',
    make: method('a', -1),
    text: 'RedlockConfigError: @WithLock on Orders.run: ttl must be from 10 to 2147483647 ms, got -1',
  },
  {
    mistake: 'an infinite ttl',
    make: method('a', Infinity),
    text: "RedlockConfigError: @WithLock on Orders.run: ttl must be a whole number of milliseconds, or a string like '250ms', '10s', '5m' or '1h', got Infinity",
  },
  {
    mistake: 'a ttl beyond maxTtl',
    make: method('a', '5m'),
    text: 'RedlockConfigError: @WithLock on Orders.run: ttl must be at most maxTtl, which is 30000 ms: raise maxTtl for the module, got 300000',
  },
  {
    mistake: 'a misspelt option',
    make: method('a', { tll: '10s' }),
    text: 'RedlockConfigError: @WithLock on Orders.run may hold known options only (did you mean ttl?), got "tll"',
  },
  {
    mistake: 'an option of another library in a decorator',
    make: method('a', { timeout: '1s' }),
    text: 'RedlockConfigError: @WithLock on Orders.run may hold known options only (did you mean wait?), got "timeout"',
  },
  {
    mistake: 'a signal in @WithLock',
    make: method('a', { signal: new AbortController().signal }),
    text: 'RedlockConfigError: @WithLock on Orders.run may hold known options only (ttl, wait, extend, maxHold, minHold, mode, permits, reentrant, onLocked, service), got "signal"',
  },
  {
    mistake: 'a status for @WithLock',
    make: method('a', { onLocked: { status: 202 } }),
    text: "RedlockConfigError: @WithLock on Orders.run: onLocked must be 'throw', 'skip' or a function, got an object (Object)",
  },
  {
    mistake: "'skip' for LockInterceptor",
    make: handler(() => untypedInterceptor('cart', { onLocked: 'skip' })),
    text: `RedlockConfigError: LockInterceptor on Carts.get: onLocked must be 'throw', a status to send such as { status: 202 }, or a function, got "skip"`,
  },
  {
    mistake: 'a service class as the key of LockInterceptor',
    make: handler(() => untypedInterceptor(LockService)),
    text: 'RedlockConfigError: LockInterceptor: key must be a name, an array of names or a function, not a class, got function LockService',
  },
  {
    mistake: 'LockInterceptor without parentheses',
    make: handler(() => LockInterceptor),
    text: 'RedlockConfigError: LockInterceptor must be called with a key: LockInterceptor(key, options), got undefined',
  },
  {
    mistake: 'a template in the key of LockInterceptor',
    make: handler(() => LockInterceptor('cart:{id}')),
    text: 'RedlockConfigError: LockInterceptor: key must not contain {id}, which nothing replaces: write a function, such as (context: ExecutionContext) => `cart:${...}`, got "cart:{id}"',
  },
  {
    mistake: 'LockInterceptor where Nest runs no interceptors',
    make: () => boot({ imports: [memory()], providers: [Sync] }),
    text: 'RedlockConfigError: LockInterceptor on Sync.run cannot lock a method under @Cron, @Interval or @Timeout, for which Nest runs no interceptors: it would run without the lock. Write @WithLock(key, options) on the method instead, got "Sync.run"',
  },
  {
    mistake: 'swapped arguments of withLock',
    make: service((locks) =>
      locks.withLock(
        untyped(() => 1),
        untyped('a'),
      ),
    ),
    text: 'RedlockConfigError: work must be the last argument: withLock(resource, options, work), got function',
  },
  {
    mistake: 'options after the work',
    make: service((locks) =>
      locks.withLock(
        'a',
        untyped(() => 1),
        untyped('10s'),
      ),
    ),
    text: 'RedlockConfigError: work must be the last argument: withLock(resource, options, work), got "10s"',
  },
  {
    mistake: 'withLock without work',
    make: service((locks) => locks.withLock('a', '10s', untyped(undefined))),
    text: 'RedlockConfigError: work must be a function: withLock(resource, options, work), got undefined',
  },
  {
    mistake: 'withLock with a promise',
    make: service((locks) => locks.withLock('a', '10s', untyped(Promise.resolve()))),
    text: 'RedlockConfigError: work must be a function: withLock(resource, options, work), got an object (Promise)',
  },
  {
    mistake: 'an option of @WithLock for withLock',
    make: service((locks) => locks.withLock('a', untyped({ onLocked: 'skip' }), () => 1)),
    text: 'RedlockConfigError: options may hold known options only (ttl, wait, extend, maxHold, minHold, signal, mode, permits, reentrant), got "onLocked"',
  },
  {
    mistake: 'a released lock that is used',
    make: service(async (locks) => {
      const lock = await locks.acquire('a');
      await lock.release();
      lock.assertHeld();
    }),
    text: 'LockLostError: lost the lock on "a": it has been released',
  },
];

beforeEach(() => {
  logs.length = 0;
});
afterEach(closeAll);

/** What the user sees: the error, or else the warnings in the log. */
async function textOf(make: () => unknown): Promise<string> {
  try {
    await make();
    return logs.filter((line) => line.startsWith('warn')).join('; ');
  } catch (error) {
    return String(error).split('\n', 1)[0] as string;
  }
}

describe('The text that a user sees', () => {
  it.each(MISTAKES)('explains: $mistake', async ({ make, text }) => {
    expect(await textOf(make)).toBe(text);
  });
});
