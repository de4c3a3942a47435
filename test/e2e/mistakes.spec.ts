import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, Injectable, StreamableFile, type Type, UseInterceptors } from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { Cron } from '@nestjs/schedule';
import { Redis } from 'ioredis';
import { type LockedMethodOptions, LockInterceptor, LockService, RedlockModule, WithLock } from 'nestjs-redlock';
import { ManualClock, memoryMasters } from 'nestjs-redlock/testing';
import { defer, EMPTY, of } from 'rxjs';
import { boot, logs } from './support/applications.js';

/** What a caller without types could write. */
const untyped = (value: unknown): never => value as never;
const untypedWithLock = WithLock as (...args: unknown[]) => MethodDecorator;
const untypedInterceptor = LockInterceptor as (...args: unknown[]) => Type;

const memory = () => RedlockModule.forRoot({ masters: 'memory' });
const root = (options: unknown) => () => boot({ imports: [RedlockModule.forRoot(untyped(options))] });
const rootAsync = (options: object) => () => boot({ imports: [RedlockModule.forRootAsync(untyped(options))] });
/** Boots with an option beside masters in memory. */
const withOption = (name: string, value: unknown) => root({ masters: 'memory', [name]: value });
const masters = (...sources: unknown[]) => root(sources);

/** A job under a schedule that nothing runs, because its module is not imported. */
const scheduled = (schedule: MethodDecorator, options: LockedMethodOptions) => (): Promise<unknown> => {
  @Injectable()
  class Orders {
    @WithLock('a', options)
    @schedule
    async run(): Promise<void> {}
  }
  return boot({ imports: [memory()], providers: [Orders] });
};

/** Boots an application with a method `run` that has this decorator. */
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

/** Calls a locked method, with an argument that is missing. */
const call =
  (key: unknown, run: (this: { run(): unknown }) => unknown = () => Promise.reject(new Error('it ran'))) =>
  async () => {
    @Injectable()
    class Orders {
      run(_?: unknown): unknown {
        return run.call(this);
      }
    }
    decorate(Orders.prototype, 'run', untypedWithLock(key));
    return (await boot({ imports: [memory()], providers: [Orders] })).get(Orders).run();
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

function decorate(target: object, name: string, decorator: MethodDecorator = untypedWithLock('a')): void {
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

/** Freezes itself, as an immutable object does. */
@Injectable()
class Frozen {
  constructor() {
    Object.freeze(this);
  }

  @WithLock('a')
  async run(): Promise<void> {}
}

/** What a compiler that emits standard decorators passes to them. */
const standardContext = (name: string): unknown => ({ kind: 'method', name, addInitializer: () => undefined });
const STANDARD =
  'needs the decorators of Nest, and the compiler emits standard (TC39) ones: set `experimentalDecorators: true` in the ' +
  'tsconfig.json that it reads, got "method"';
const FROZEN =
  'must not be frozen or sealed: an object with methods under decorators of this package keeps what runs them, got an object';

beforeEach(() => {
  logs.length = 0;
});

/** What the user sees: the first line of the error, or else the warnings in the log. */
async function textOf(make: () => unknown): Promise<string> {
  try {
    await make();
    return logs.filter((line) => line.startsWith('warn')).join('; ');
  } catch (error) {
    return String(error).split('\n', 1)[0] as string;
  }
}

/** Mistakes whose texts begin alike. */
function explains(beginning: string, rows: readonly (readonly [mistake: string, make: () => unknown, text: string])[]) {
  it.each(rows)('%s', async (_, make, text) => {
    expect(await textOf(make)).toBe(beginning + text);
  });
}

const DURATION = "must be a whole number of milliseconds, or a string like '250ms', '10s', '5m' or '1h'";
const SCHEME = 'must begin with redis:// or rediss://, as in redis://localhost:6379, or be the path of a unix socket';
const LIST = "must be a list of at least one master, or 'memory'";
const client = new Redis({ lazyConnect: true });

describe('The text that a user sees explains a mistake in the options of the module:', () => {
  explains('RedlockConfigError: options must be a list of masters, or an object with `masters`', [
    ['no options', root(undefined), '; an environment variable may be missing, got undefined'],
    ['a number', root(3), ', got 3'],
    ['one address', root('redis://a:1'), '; one address goes into a list, such as [url], got "redis://a:1"'],
    ['a client', root(client), '; a client goes into a list, such as [client], got an object (EventEmitter)'],
  ]);
  explains(
    'RedlockConfigError: options must be a list of masters, or an object with `masters`, also as the result of a factory, got ',
    [
      ['a factory of one address', rootAsync({ useFactory: () => 'redis://a' }), '"redis://a"'],
      ['a factory of nothing', rootAsync({ useFactory: () => undefined }), 'undefined'],
    ],
  );
  explains('RedlockConfigError: options may hold known options only (', [
    ['a name for masters', root({ servers: [] }), 'did you mean masters?), got "servers"'],
    ['the address itself', root({ host: 'a', port: 6379 }), 'did you mean masters?), got "host"'],
    ['attempts', withOption('retryCount', 3), `wait: '5s' bounds the time of all attempts), got "retryCount"`],
  ]);
  explains('RedlockConfigError: ', [
    [
      'forRootAsync with the options of forRoot',
      rootAsync({ masters: 'memory' }),
      'forRootAsync needs useFactory, useClass or useExisting: the options themselves go to forRoot, got an object (Object)',
    ],
    [
      'a factory that returns the name',
      rootAsync({ useFactory: () => ({ masters: 'memory', name: 'billing' }) }),
      'name belongs beside useFactory, not into what it gives, got "billing"',
    ],
    ['a ttl', withOption('ttl', 9), "ttl must be from 10 to 2147483647 ms: for seconds, write '9s', got 9"],
    ['enabled from the environment', withOption('enabled', 'false'), 'enabled must be true or false, got "false"'],
    ['connectTimeout', withOption('connectTimeout', 0), 'connectTimeout must be from 1 to 2147483647 ms, got 0'],
    ['an empty name', withOption('name', ''), 'name must be a non-empty string, got ""'],
    [
      'half a clock',
      withOption('clock', { read: 1 }),
      'clock must be an object with the methods read, schedule, afterInput, got an object (Object)',
    ],
    [
      'two services without a name',
      () => boot({ imports: [memory(), memory()] }),
      'name must be different for each lock service of one application: RedlockModule.forRoot() is global, so import it ' +
        'once, in the root module, or give each of several another name, got undefined',
    ],
  ]);
  explains("Error: Nest can't resolve dependencies of the ", [
    [
      'RedlockModule without forRoot',
      () => boot({ imports: [RedlockModule] }),
      'RedlockModule (?, LockExplorer). Please make sure that the argument Symbol(nestjs-redlock: import RedlockModule.forRoot(...) once, in the root module, and never RedlockModule itself) at index [0] is available in the RedlockModule module.',
    ],
    [
      'no module, below @WithLock',
      () => boot({ providers: [Plain] }),
      `Plain. Please make sure that the "Symbol(LockService of nestjs-redlock: import RedlockModule.forRoot(...), in a test RedlockTestingModule.forRoot() of nestjs-redlock/testing)" property is available in the current context.`,
    ],
    [
      'no module, below LockInterceptor',
      handler(() => LockInterceptor('cart'), []),
      'LockInterceptor (?). Please make sure that the argument Symbol(LockService of nestjs-redlock: import RedlockModule.forRoot(...), in a test RedlockTestingModule.forRoot() of nestjs-redlock/testing) at index [0] is available in the RootTestModule module.',
    ],
    [
      'a named service that does not exist',
      () => boot({ imports: [memory()], providers: [Billing] }),
      `Billing. Please make sure that the "Symbol(LockService "billing" of nestjs-redlock: import RedlockModule.forRoot({ name: 'billing', ... }), in a test RedlockTestingModule.forRoot({ name: 'billing' }) of nestjs-redlock/testing)" property is available in the current context.`,
    ],
  ]);
  explains('', [
    [
      "masters: 'memory' in production",
      async () => {
        const { NODE_ENV } = process.env;
        process.env.NODE_ENV = 'production';
        try {
          await root({ masters: 'memory' })();
        } finally {
          process.env.NODE_ENV = NODE_ENV;
        }
      },
      "warn masters: 'memory' with NODE_ENV=production: locks are within this process only and exclude no other one; give the addresses of Redis servers",
    ],
    ["masters: 'memory' in a test", root({ masters: 'memory' }), ''],
    ['three masters', root({ masters: memoryMasters(3) }), ''],
    [
      'four masters',
      root({ masters: memoryMasters(4) }),
      'warn masters: 4 is an even number and survives no more failures than 3 would: give 3 or 5',
    ],
    ['a ttl in seconds', withOption('ttl', 249), "warn ttl is 249 ms: were seconds meant? Then write '249s'"],
    ['a ttl of a quarter of a second', withOption('ttl', 250), ''],
  ]);
});

describe('The text that a user sees explains a mistake in the masters:', () => {
  const QUOTED = 'be without quotes: JSON keeps them, and so does Docker with an env file';
  const SEPARATED = "be one address: a list has commas between its addresses, and is split there, .split(',')";
  const twin = (other: string) =>
    `must be another server than masters[0], an independent one, or be removed: one server has one vote, got "${other}"`;
  const [master] = memoryMasters();

  explains(`RedlockConfigError: masters ${LIST}`, [
    ['none', root({}), '; an environment variable may be missing, got undefined'],
    ['an empty text', root({ masters: '' }), '; an environment variable may be missing, got ""'],
    ['an empty list', root([]), ', got []'],
    ['one address', root({ masters: 'redis://a' }), '; one address goes into a list, such as [url], got "redis://a"'],
    [
      'a comma list with passwords',
      root({ masters: 'redis://:hunter2@a:6379,redis://:hunter2@b:6379' }),
      `; split a list of addresses at its commas, .split(','), got "redis://***"`,
    ],
  ]);
  explains('RedlockConfigError: masters[0] must ', [
    [
      'an empty environment variable',
      masters(...''.split(',')),
      'be a redis:// or rediss:// URL and not empty: an environment variable may be missing, got ""',
    ],
    [
      'a missing environment variable',
      masters(undefined),
      'be a redis:// or rediss:// URL, the path of a unix socket, ioredis options or an ioredis client: an environment variable may be missing, got undefined',
    ],
    ['commas', masters('a:1,b:1'), `be one address: split a list of them at its commas, .split(','), got "a:1,b:1"`],
    [
      "'memory' in a list",
      masters('memory'),
      `be an address: 'memory' stands instead of the whole list, { masters: 'memory' }, got "memory"`,
    ],
    ['an env file with quotes', masters('"redis://a:1', ' redis://b:1"'), `${QUOTED}, got "***"`],
    ['semicolons in a list', masters('redis://a:1;redis://b:1'), `${SEPARATED}, got "redis://***"`],
    ['a port that no server has', masters('redis://a:99999'), 'have a port from 1 to 65535, got "redis://a:99999"'],
    [
      'a database that no server has',
      masters('redis://a:6379/-1'),
      'have the number of a database as its path, as in redis://localhost:6379/0, or no path, got "redis://a:6379/-1"',
    ],
  ]);
  explains('RedlockConfigError: masters', [
    ['an address without a scheme', masters('localhost:6379'), `[0] ${SCHEME}, got "localhost:6379"`],
    ['the same master twice', masters('redis://a:6379', 'redis://b', 'redis://A:6379/1'), `[2] ${twin('a:6379')}`],
    ['the same URL and options', masters('redis://LOCALHOST:1', { port: 1 }), `[1] ${twin('localhost:1')}`],
    ['the same master in memory twice', masters(master, master), `[1] ${twin('memory-1')}`],
  ]);
});

describe('The text that a user sees explains a mistake in a method under @WithLock:', () => {
  const NEEDS = 'needs a method that returns a promise';
  const MEMBER = ': write it as a method, got "an accessor or a property"';
  const NO_TEMPLATE = 'which nothing replaces: write a function, such as (id: string) => `order:${id}`';
  const EACH =
    'a tick that ends within 5000 ms runs on each instance, one after the other. Use @LockedCron or ' +
    "@LockedInterval, or give onLocked: 'skip' and a minHold, or a wait if this is what you want";
  const LATER =
    'warn @WithLock on Orders.run: a tick that has ended before the timer of another instance fires runs there, too. ' +
    'Use @LockedCron or @LockedInterval, or give a minHold that is longer than its wait';
  const MIN_HOLD = 'the ticks in between are skipped. Give a minHold that is shorter than the period';

  explains('RedlockConfigError: @WithLock on Shapes', [
    ['a class', () => (untypedWithLock('a') as unknown as ClassDecorator)(Shapes), ` ${NEEDS}, got "a class"`],
    ['static', () => decorate(Shapes, 'fixed'), `.fixed ${NEEDS}: make it an instance method, got "a static method"`],
    ['an accessor', () => decorate(Shapes.prototype, 'value'), `.value ${NEEDS}${MEMBER}`],
    ['a property', () => decorate(Shapes.prototype, 'none'), `.none ${NEEDS}${MEMBER}`],
    ['a generator', () => decorate(Shapes.prototype, 'stream'), `.stream ${NEEDS}, got "a generator"`],
  ]);
  explains(
    'RedlockConfigError: @WithLock on Orders.run cannot lock what runs after the method has returned: use LockInterceptor, got an object (',
    [
      ['an Observable', call('a', () => of(1)), 'Observable)'],
      ['a promise of an Observable', call('a', async () => Promise.resolve(EMPTY)), 'Observable)'],
      ['what an async generator gives', call('a', () => (async function* () {})()), 'no class)'],
      ['a promise of a file', call('a', async () => new StreamableFile(Buffer.of(1))), 'StreamableFile)'],
      [
        'an async iterator of an older compiler',
        call('a', () => ({ [Symbol.asyncIterator]: () => undefined, next: async () => Promise.resolve() })),
        'Object)',
      ],
    ],
  );
  explains('RedlockConfigError: @WithLock on Orders.run', [
    [
      'a status',
      method('a', { onLocked: { status: 202 } }),
      ": onLocked must be 'throw', 'skip' or a function, got an object (Object)",
    ],
    [
      'a signal',
      method('a', { signal: new AbortController().signal }),
      ' may hold known options only (ttl, wait, extend, maxHold, minHold, mode, permits, reentrant, onLocked, service), got "signal"',
    ],
    [
      'an option of another library',
      method('a', { timeout: '1s' }),
      ' may hold known options only (did you mean wait?), got "timeout"',
    ],
    ['an empty wait', method('a', { onLocked: 'skip', wait: '' }), `: wait ${DURATION}, got ""`],
    ['reentrant', method('a', { reentrant: 1 }), ': reentrant must be true or false, got 1'],
    [
      'a minHold that is longer than maxHold',
      method('a', { ttl: '5s', minHold: '7s', maxHold: '6s' }),
      ': minHold must be at most maxHold, which is 6000 ms, got "7s"',
    ],
    ['ttl 5 for seconds', method('a', 5), ": ttl must be from 10 to 2147483647 ms: for seconds, write '5s', got 5"],
    ["ttl '10 seconds'", method('a', '10 seconds'), `: ttl ${DURATION}, got "10 seconds"`],
    ['options instead of the ttl', method('a', { ttl: { ttl: '10s' } }), `: ttl ${DURATION}, got an object (Object)`],
  ]);
  explains('RedlockConfigError: @WithLock on Orders.run: key must ', [
    ['no key', method(), 'be a non-empty string or a non-empty array of them, got undefined'],
    ['a template', method('order:{id}'), `not contain {id}, ${NO_TEMPLATE}, got "order:{id}"`],
    ['a template literal in quotes', method('order:${id}'), `not contain \${id}, ${NO_TEMPLATE}, got "order:\${id}"`],
    [
      'a key of a missing argument',
      call((id: unknown) => `order:${id as string}`),
      'not contain undefined: a value that the name is made of is missing (if the word is meant, write JSON.stringify(value)), got "order:undefined"',
    ],
    [
      'a key of an object',
      call((order: unknown = {}) => `order:${order as string}`),
      'not contain [object Object]: name one of its properties, got "order:[object Object]"',
    ],
    [
      'a key function that is async',
      call(async () => Promise.resolve('order')),
      'be a non-empty string or a non-empty array of them, got an object (Promise)',
    ],
  ]);
  explains('', [
    [
      'no parentheses',
      () => decorate(Shapes.prototype, 'stream', untyped(WithLock)),
      'RedlockConfigError: @WithLock needs parentheses and a key: @WithLock(key), got "stream"',
    ],
    [
      'a compiler without experimentalDecorators',
      () => void Reflect.apply(untypedWithLock('a'), undefined, [() => undefined, standardContext('stream')]),
      `RedlockConfigError: @WithLock on stream ${STANDARD}`,
    ],
    [
      'a provider that freezes itself',
      () => boot({ imports: [memory()], providers: [Frozen] }),
      `RedlockConfigError: provider of class Frozen ${FROZEN} (Frozen)`,
    ],
    [
      'a frozen value',
      () => boot({ imports: [memory()], providers: [{ provide: 'plain', useValue: Object.freeze(new Plain()) }] }),
      `RedlockConfigError: provider of class Plain ${FROZEN} (Plain)`,
    ],
    [
      'three arguments',
      method('a', '10s', { wait: '2s' }),
      "RedlockConfigError: @WithLock takes a key and options, and no third argument: write { ttl: '10s', wait: '2s' }, got an object (Object)",
    ],
    [
      'an object without Nest',
      () => new Plain().run(),
      'RedlockConfigError: @WithLock on Plain.run has no LockService, so it does not run: let Nest create the object, import RedlockModule.forRoot(), and call the method after the constructor, and no earlier than onApplicationBootstrap if a factory made the object. In a test, wrap an object that Nest did not create: withLocks(object) of nestjs-redlock/testing, got an object (Plain)',
    ],
    [
      'a nested lock',
      call('a', async function () {
        await this.run();
      }),
      'LockReentryError: this call chain already holds "a" (@WithLock on Orders.run): the nested call for "a" would wait for itself. Pass `reentrant: true` to withLock or @WithLock to run it inside the lock that is held. If neither call contains the other, a queue or pool has run this one in the call chain of the holder: give it AsyncResource.bind(task)',
    ],
    [
      'ttl 10, meant in seconds',
      method('a', 10),
      "warn @WithLock on Orders.run: ttl is 10 ms: were seconds meant? Then write '10s'",
    ],
    ['a ttl of a quarter of a second', method('a', 250), ''],
    [
      'minHold that is not shorter than the period of a cron job',
      scheduled(Cron('*/5 * * * * *'), { minHold: '30s' }),
      `warn @WithLock on Orders.run: minHold is 30000 ms, and its schedule is due every 5000 ms: ${MIN_HOLD}`,
    ],
    ['a schedule with the default wait', scheduled(Cron('0 * * * *'), {}), `warn @WithLock on Orders.run: ${EACH}`],
    ['a schedule that is skipped, without a minHold', scheduled(Cron('0 * * * *'), { onLocked: 'skip' }), LATER],
    [
      'a schedule that waits for longer than its minHold',
      scheduled(Cron('0 * * * *'), { onLocked: 'skip', wait: '4s', minHold: '1s' }),
      LATER,
    ],
  ]);
});

it('The Observable that a method under @WithLock returns is not subscribed to', async () => {
  const subscribed = jest.fn(() => of(1));
  expect(await textOf(call('a', () => defer(subscribed)))).toContain('use LockInterceptor');
  expect(subscribed).not.toHaveBeenCalled();
});

describe('The text that a user sees explains a mistake with LockInterceptor:', () => {
  const withOnLocked = (onLocked: unknown) => handler(() => untypedInterceptor('cart', { onLocked }));

  explains(
    "RedlockConfigError: LockInterceptor on Carts.get: onLocked must be 'throw', a status to send such as { status: 202 }, or a function, got ",
    [
      ["'skip'", withOnLocked('skip'), '"skip"'],
      ['a status that ends no response', withOnLocked({ status: 199 }), 'an object (Object)'],
      ['a status as a string', withOnLocked({ status: '202' }), 'an object (Object)'],
    ],
  );
  explains('RedlockConfigError: LockInterceptor', [
    [
      'a service class as the key',
      handler(() => untypedInterceptor(LockService)),
      ': key must be a name, an array of names or a function, not a class, got function LockService',
    ],
    [
      'no parentheses',
      handler(() => LockInterceptor),
      ' must be called with a key: LockInterceptor(key, options), got undefined',
    ],
    [
      'a template in the key',
      handler(() => LockInterceptor('cart:{id}')),
      ': key must not contain {id}, which nothing replaces: write a function, such as (context: ExecutionContext) => `cart:${...}`, got "cart:{id}"',
    ],
  ]);
  explains('', [
    [
      'ttl 30, meant in seconds',
      handler(() => LockInterceptor('cart', 30)),
      "warn LockInterceptor on Carts.get: ttl is 30 ms: were seconds meant? Then write '30s'",
    ],
  ]);
});

it('Options that depend on the request are refused at boot', async () => {
  const scoped = RedlockModule.forRootAsync({ inject: [REQUEST], useFactory: () => ({ masters: 'memory' }) });
  expect(await textOf(() => boot({ imports: [scoped] }))).toBe(
    'RedlockConfigError: forRootAsync must give the same options to all requests: remove the scope of the factory or ' +
      'class, and of what is injected into it',
  );
});

it('A lock service that is listed as a provider is refused with what to import', async () => {
  expect(await textOf(() => boot({ providers: [LockService] }))).toBe(
    'RedlockConfigError: LockService is provided by RedlockModule.forRoot(...): import that, and neither list the class ' +
      'nor create it, got undefined',
  );
});

describe('The text that a user sees explains a mistake in a call of the service:', () => {
  const work = async () => Promise.resolve();

  explains('RedlockConfigError: work must be the last argument: withLock(resource, options, work), got ', [
    ['swapped arguments', service((locks) => locks.withLock(untyped(work), untyped('a'))), 'function work'],
    ['options after the work', service((locks) => locks.withLock('a', untyped(work), untyped('10s'))), '"10s"'],
  ]);
  explains('RedlockConfigError: work must be a function: withLock(resource, options, work), got ', [
    ['no work', service((locks) => locks.withLock('a', '10s', untyped(undefined))), 'undefined'],
    ['a promise', service((locks) => locks.withLock('a', '10s', untyped(work()))), 'an object (Promise)'],
  ]);
  explains('', [
    [
      'an option of @WithLock',
      service((locks) => locks.withLock('a', untyped({ onLocked: 'skip' }), work)),
      'RedlockConfigError: options may hold known options only (ttl, wait, extend, maxHold, minHold, signal, mode, permits, reentrant), got "onLocked"',
    ],
    [
      'a released lock that is used',
      service(async (locks) => {
        const lock = await locks.acquire('a');
        await lock.release();
        lock.assertHeld();
      }),
      'LockLostError: lost the lock on "a": it has been released',
    ],
    [
      'ttls of calls, meant in seconds and named once each',
      async () => {
        // The manual clock stands still, so no lock ends by its ttl on a slow machine.
        const options = { masters: 'memory', clock: new ManualClock() } as const;
        const locks = (await boot({ imports: [RedlockModule.forRoot(options)] })).get(LockService);
        await locks.withLock('a', { ttl: 20 }, () => 1);
        await (await locks.acquire('a', 20)).release();
        await (await locks.acquire('a', 30)).release();
      },
      "warn ttl is 20 ms: were seconds meant? Then write '20s'; warn ttl is 30 ms: were seconds meant? Then write '30s'",
    ],
    [
      'ttls of extensions, meant in seconds and named once each',
      async () => {
        const options = { masters: 'memory', clock: new ManualClock() } as const;
        const locks = (await boot({ imports: [RedlockModule.forRoot(options)] })).get(LockService);
        const lock = await locks.acquire('a', '10s');
        for (const ttl of [60, 60, '2s'] as const) await lock.extend(ttl);
        await lock.release();
      },
      "warn lock.extend: ttl is 60 ms: were seconds meant? Then write '60s'",
    ],
  ]);
});
