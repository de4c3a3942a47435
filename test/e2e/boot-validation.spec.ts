import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, Injectable, Scope, UseInterceptors } from '@nestjs/common';
import { Redis } from 'ioredis';
import {
  type AcquireOptions,
  type Duration,
  InjectLockService,
  type LockedMethodOptions,
  LockInterceptor,
  LockService,
  RedlockConfigError,
  RedlockModule,
  WithLock,
} from 'nestjs-redlock';
import { memoryMasters } from 'nestjs-redlock/testing';
import { boot, closeAll, logs } from './support/applications.js';
import { Locks } from './support/locks.js';
import { inspect } from 'node:util';
import { anything, optionObjects } from '../support/hostile.js';
import { fc } from '../support/properties.js';

jest.setTimeout(60_000);

afterEach(closeAll);

/** What a caller without types could write. */
const untyped = (value: unknown): never => value as never;

async function refusalOf(action: () => unknown): Promise<RedlockConfigError> {
  try {
    await action();
  } catch (error) {
    expect(error).toBeInstanceOf(RedlockConfigError);
    return error as RedlockConfigError;
  }
  throw new Error('it was not refused');
}

describe('Validation at boot', () => {
  /** Values that are invalid as durations, whatever the bounds are. */
  const NO_DURATIONS: [unknown, string][] = [
    [NaN, 'NaN'],
    [Infinity, 'Infinity'],
    [1.5, '1.5'],
    [-1, '-1'],
    [2 ** 31, '2147483648'],
    ['10', '"10"'],
    ['10 s', '"10 s"'],
    ['5 minutes', '"5 minutes"'],
    ['', '""'],
    [true, 'true'],
    [[], '[]'],
    [{}, 'an object (Object)'],
    [10n, '10n'],
  ];

  const bootWith = (options: object) =>
    refusalOf(() => boot({ imports: [RedlockModule.forRoot(untyped({ masters: memoryMasters(3), ...options }))] }));

  describe('The validation of the module options at boot', () => {
    it.each(NO_DURATIONS)('refuses ttl: %p', async (value, shown) => {
      const error = await bootWith({ ttl: value });
      expect(error.option).toBe('ttl');
      expect(error.message).toContain(`got ${shown}`);
    });

    it.each([
      ['ttl', 9, 'ttl must be from 10 to 2147483647 ms, got 9'],
      ['ttl', 0, 'ttl must be from 10 to 2147483647 ms, got 0'],
      ['wait', -1, 'wait must be from 0 to 2147483647 ms, got -1'],
      [
        'wait',
        '5 s',
        `wait must be a whole number of milliseconds, or a string like '250ms', '10s', '5m' or '1h', got "5 s"`,
      ],
      ['maxHold', '9s', 'maxHold must be at least the ttl, which is 10000 ms, got "9s"'],
      ['maxHold', NaN, 'maxHold must be a whole number'],
      ['masterTimeout', 2_501, 'masterTimeout must be at most a quarter of the ttl, which is 10000 ms, got 2501'],
      ['masterTimeout', 0, 'masterTimeout must be from 1 to 2147483647 ms, got 0'],
      ['driftFactor', 0.6, 'driftFactor must be a number from 0 to 0.5, got 0.6'],
      ['driftFactor', NaN, 'driftFactor must be a number from 0 to 0.5, got NaN'],
      ['driftFactor', '0.1', 'driftFactor must be a number from 0 to 0.5, got "0.1"'],
      ['maxTtl', '5s', 'ttl must be at most maxTtl, which is 5000 ms: raise maxTtl for the module, got 10000'],
      ['maxTtl', 1, 'maxTtl must be from 10 to 2147483647 ms, got 1'],
      ['keyPrefix', 7, 'keyPrefix must be a string, got 7'],
      ['enabled', 'no', 'enabled must be true or false, got "no"'],
      ['lazyConnect', 1, 'lazyConnect must be true or false, got 1'],
      ['connectTimeout', 0, 'connectTimeout must be from 1 to 2147483647 ms, got 0'],
      ['connectTimeout', '1 day', 'connectTimeout must be a whole number'],
      ['drainTimeout', -5, 'drainTimeout must be from 0 to 2147483647 ms, got -5'],
      ['isGlobal', 'yes', 'isGlobal must be true or false, got "yes"'],
      ['name', '', 'name must be a non-empty string, got ""'],
      ['name', 7, 'name must be a non-empty string, got 7'],
      ['ttI', '10s', 'options may hold known options only (did you mean ttl?), got "ttI"'],
      ['key_prefix', 'a', 'did you mean keyPrefix?'],
      ['nme', 'a', 'got "nme"'],
    ])('refuses %s: %p', async (name, value, message) => {
      expect((await bootWith({ [name]: value })).message).toContain(message);
    });

    it('never shows the value of an unknown option', async () => {
      expect((await bootWith({ password: 'hunter2' })).message).not.toContain('hunter2');
    });
  });

  describe('The validation of the masters at boot', () => {
    const client = new Redis({ lazyConnect: true });

    it.each([
      ['a string that is no URL', ['127.0.0.1:6379'], 'masters[0]'],
      ['a number', [6379], 'masters[0]'],
      ['null', [null], 'masters[0]'],
      ['options without a server', [{ hots: '10.0.0.1' }], 'masters[0] must say where the server is'],
      ['a URL as an option', [{ url: 'redis://127.0.0.1' }], 'a URL is a string and no option'],
      ['a client without a list', client, "or 'memory'; a client goes into a list, such as [client]"],
      ['the same URL twice', ['redis://127.0.0.1:1', 'redis://127.0.0.1:2', 'redis://127.0.0.1:1'], 'masters[2]'],
      ['two databases of one server', ['redis://127.0.0.1:1/0', 'redis://127.0.0.1:1/1'], 'masters[1]'],
      ['one server as URL and as options', ['redis://LOCALHOST:1', { host: 'localhost', port: 1 }], 'masters[1]'],
    ])('refuses %s', async (_, masters, message) => {
      expect((await bootWith({ masters })).message).toContain(message);
    });

    it('refuses the same master in memory twice', async () => {
      const [master] = memoryMasters();
      expect((await bootWith({ masters: [master, master] })).message).toBe(
        'masters[1] must be another server than masters[0]: one server has one vote, got "memory-1"',
      );
    });

    it.each([
      ['null', null],
      ['a number', 3],
    ])('refuses %s in place of the options', async (_, options) => {
      const error = await refusalOf(() => boot({ imports: [RedlockModule.forRoot(untyped(options))] }));
      expect(error.message).toContain('options must be a list of masters, or an object with `masters`');
    });

    it('refuses a client in place of the options', async () => {
      const error = await refusalOf(() => boot({ imports: [RedlockModule.forRoot(untyped(client))] }));
      expect(error.message).toContain('an object with `masters`; a client goes into a list, such as [client]');
    });

    it('does not show the password of an invalid URL', async () => {
      const error = await bootWith({ masters: ['redis://user:hunter2@127.0.0.1:99999'] });
      expect(error.message).not.toContain('hunter2');
      expect(JSON.stringify(error)).not.toContain('hunter2');
    });

    it('warns of an even number of masters, and not of an odd one', async () => {
      await boot({ imports: [new Locks(3).module()] });
      expect(logs.filter((line) => line.startsWith('warn'))).toEqual([]);
      await boot({ imports: [new Locks(4).module()] });
      expect(logs.filter((line) => line.startsWith('warn'))).toEqual([
        'warn masters: 4 is an even number and survives no more failures than 3 would',
      ]);
    });
  });

  /** Invalid options of a decorator and of an interceptor, and what the message says after the name of their owner. */
  const WRONG_CALLS: [string, unknown, object, string][] = [
    [
      'ttl beyond maxTtl',
      '5m',
      {},
      ': ttl must be at most maxTtl, which is 30000 ms: raise maxTtl for the module, got 300000',
    ],
    ['ttl 0', 0, {}, ': ttl must be from 10 to 2147483647 ms, got 0'],
    ['ttl as a string without a unit', '10', {}, ': ttl must be a whole number of milliseconds'],
    ['options in place of the ttl', { wait: 0 }, {}, ': ttl must be a whole number of milliseconds'],
    ['wait', '5s', { wait: -1 }, ': wait must be from 0 to 2147483647 ms, got -1'],
    ['extend', '5s', { extend: 'yes' }, ': extend must be true or false, got "yes"'],
    ['maxHold', '5s', { maxHold: '1s' }, ': maxHold must be at least the ttl, which is 5000 ms, got "1s"'],
    [
      'minHold beyond maxHold',
      '5s',
      { minHold: '7s', maxHold: '6s' },
      ': minHold must be at most maxHold, which is 6000 ms, got "7s"',
    ],
    ['minHold beyond maxTtl', '5s', { minHold: '31s' }, ': minHold must be at most maxTtl, which is 30000 ms'],
    ['reentrant', '5s', { reentrant: 1 }, ': reentrant must be true or false, got 1'],
    ['signal', '5s', { signal: AbortSignal.abort() }, ' may hold known options only ('],
    [
      'an unknown option',
      '5s',
      { onLock: 'skip' },
      ' may hold known options only (did you mean onLocked?), got "onLock"',
    ],
  ];

  describe.each(WRONG_CALLS)('An invalid call, %s, is refused at boot', (_, ttl, options, message) => {
    it('on @WithLock, with the name of the method', async () => {
      @Injectable()
      class Jobs {
        @WithLock('a', { ttl: ttl as Duration, ...options })
        async run(): Promise<void> {}
      }
      const error = await refusalOf(() => boot({ imports: [new Locks().module()], providers: [Jobs] }));
      expect(error.message).toContain(`@WithLock on Jobs.run${message}`);
    });

    it('on LockInterceptor, with the name of the handler', async () => {
      @Controller()
      class Carts {
        @Get()
        @UseInterceptors(LockInterceptor('cart', { ttl: ttl as Duration, ...options }))
        get(): void {}
      }
      const error = await refusalOf(() => boot({ imports: [new Locks().module()], controllers: [Carts] }));
      expect(error.message).toContain(`LockInterceptor on Carts.get${message}`);
    });
  });

  describe('An invalid onLocked is refused at boot', () => {
    it.each([
      [{ status: 99 }, 'an object'],
      [{ status: '202' }, 'an object'],
      [null, 'null'],
    ])('on LockInterceptor, which names the status to send: %j', async (onLocked, shown) => {
      @Controller()
      class Carts {
        @Get()
        @UseInterceptors(LockInterceptor('cart', { onLocked: untyped(onLocked) }))
        get(): void {}
      }
      const error = await refusalOf(() => boot({ imports: [new Locks().module()], controllers: [Carts] }));
      expect(error.message).toContain(
        `LockInterceptor on Carts.get: onLocked must be 'throw', a status to send such as { status: 202 }, or a function, got ${shown}`,
      );
    });
  });

  describe('A ttl below 250 ms is accepted, with a warning at boot that asks whether seconds were meant', () => {
    it('in the options of the module, of @WithLock and of LockInterceptor', async () => {
      @Injectable()
      class Jobs {
        @WithLock('a', 10)
        async run(): Promise<void> {}

        @WithLock('b', 250)
        async later(): Promise<void> {}

        @WithLock('c')
        async usual(): Promise<void> {}
      }
      @Controller()
      class Carts {
        @Get()
        @UseInterceptors(LockInterceptor('cart', 30))
        get(): void {}
      }
      await boot({ imports: [new Locks().module({ ttl: 249 })], providers: [Jobs], controllers: [Carts] });
      expect(logs.filter((line) => line.includes('seconds')).sort()).toEqual([
        `warn @WithLock on Jobs.run: ttl is 10 ms: were seconds meant? Then write '10s'`,
        `warn LockInterceptor on Carts.get: ttl is 30 ms: were seconds meant? Then write '30s'`,
        `warn ttl is 249 ms: were seconds meant? Then write '249s'`,
      ]);
    });
  });

  describe('Invalid options are found at boot on', () => {
    class Wrong {
      @WithLock('a', '2h')
      async run(): Promise<void> {}
    }

    it.each([
      ['a request-scoped provider', { provide: 'W', useClass: Wrong, scope: Scope.REQUEST }],
      ['a transient provider', { provide: 'W', useClass: Wrong, scope: Scope.TRANSIENT }],
      ['a value', { provide: 'W', useValue: new Wrong() }],
      ['the result of a factory', { provide: 'W', useFactory: () => new Wrong() }],
    ])('%s', async (_, provider) => {
      const error = await refusalOf(() => boot({ imports: [new Locks().module()], providers: [provider] }));
      expect(error.option).toBe('@WithLock on Wrong.run: ttl');
    });

    it('a controller and a subclass', async () => {
      @Controller()
      class Subclass extends Wrong {}
      const error = await refusalOf(() => boot({ imports: [new Locks().module()], controllers: [Subclass] }));
      expect(error.option).toBe('@WithLock on Wrong.run: ttl');
    });

    it('a method of another service, to which only the options of that service apply', async () => {
      const [main, billing] = [new Locks(1, { maxTtl: '3h' }), new Locks(1, { name: 'billing' })];
      await boot({ imports: [main.module(), billing.module()], providers: [Wrong] });
      class WrongBilling {
        @WithLock('a', { ttl: '2h', service: 'billing' })
        async run(): Promise<void> {}
      }
      const start = () => boot({ imports: [main.module(), billing.module()], providers: [WrongBilling] });
      expect((await refusalOf(start)).option).toBe('@WithLock on WrongBilling.run: ttl');
    });
  });
});

describe('Hostile options', () => {
  /** Settles with the result of the action. If the action fails, its error must be informative and short. */
  async function attempt<T>(action: () => T | Promise<T>): Promise<T | undefined> {
    try {
      return await action();
    } catch (error) {
      // The reason of a signal that had already aborted.
      if (error instanceof DOMException && error.name === 'AbortError') return undefined;
      expect(error).toBeInstanceOf(RedlockConfigError);
      expect((error as Error).message.length).toBeLessThan(400);
      return undefined;
    }
  }

  const MODULE_OPTIONS = ['ttl', 'wait', 'maxTtl', 'keyPrefix', 'enabled', 'clock', 'isGlobal'];
  const CALL_OPTIONS = ['wait', 'extend', 'maxHold', 'signal', 'reentrant', 'onLocked', 'service'];

  describe('Any value', () => {
    it('given to forRoot with masters boots, or is refused by name', async () => {
      await fc.assert(
        fc.asyncProperty(optionObjects(MODULE_OPTIONS), async ({ value }) => {
          if (typeof value === 'object' && value !== null && Object.isExtensible(value)) {
            Reflect.defineProperty(value, 'masters', { value: 'memory', enumerable: true });
          }
          await attempt(() => boot({ imports: [RedlockModule.forRoot(untyped(value))] }));
          await closeAll();
        }),
        { numRuns: 60 },
      );
    });

    it('given to forRoot unchanged is accepted, or refused by name', async () => {
      await fc.assert(
        fc.asyncProperty(fc.oneof(anything, optionObjects(MODULE_OPTIONS)), async ({ value }) => {
          await attempt(() => void RedlockModule.forRoot(untyped(value)));
          await attempt(() => void RedlockModule.forRoot({ masters: untyped([value]) }));
        }),
        { numRuns: 500 },
      );
    });

    it('given to the service locks, or is refused by name, and nothing is left', async () => {
      const locks = new Locks(3);
      const service = (await boot({ imports: [locks.module()] })).get(LockService);
      let ran = 0;
      await fc.assert(
        fc.asyncProperty(
          anything,
          fc.option(anything, { nil: undefined }),
          optionObjects(CALL_OPTIONS),
          async (...given) => {
            const [resource, ttl, options] = given.map((boxed) => boxed?.value) as [
              string,
              number,
              AcquireOptions | undefined,
            ];
            for (const call of [
              async () => (await service.acquire(resource, options)).release(),
              async () => (await service.tryAcquire(resource, options))?.release(),
              async () => (await service.tryAcquire('b', ttl))?.release(),
              async () => service.inspect(resource),
              () => service.withLock('c', options, () => ran++),
            ]) {
              await attempt<unknown>(call);
            }
          },
        ),
        { numRuns: 300 },
      );
      expect(ran).toBeGreaterThan(0);
      await locks.expectNothingLeft();
    });

    it('given to a decorator or an interceptor is accepted, or refused by name at once', async () => {
      await fc.assert(
        fc.asyncProperty(anything, optionObjects(CALL_OPTIONS), async ({ value: key }, { value: options }) => {
          const decorate = (): object => {
            class Jobs {
              @WithLock(key as string, options as LockedMethodOptions)
              async run(): Promise<void> {}
            }
            return Jobs;
          };
          await attempt(decorate);
          await attempt(() => void LockInterceptor(untyped(key), untyped(options)));
        }),
        { numRuns: 500 },
      );
    });
  });

  describe('Options from untrusted data', () => {
    it('cannot turn locking off by their prototype', async () => {
      const options: unknown = JSON.parse('{"masters": "memory", "__proto__": {"enabled": false}}');
      const refusal = await refusalOf(() => boot({ imports: [RedlockModule.forRoot(untyped(options))] }));
      expect(refusal).toMatchObject({ option: 'options', value: '__proto__' });
      const inherited = Object.assign(Object.create({ enabled: false }) as object, { masters: 'memory' });
      expect(await refusalOf(() => boot({ imports: [RedlockModule.forRoot(untyped(inherited))] }))).toMatchObject({
        option: 'options',
        value: 'enabled',
      });
      expect(
        await refusalOf(() => boot({ imports: [RedlockModule.forRootAsync({ useFactory: () => untyped(options) })] })),
      ).toMatchObject({ value: '__proto__' });
    });

    it.each(['enabled', 'lazyConnect', 'connectTimeout', 'drainTimeout', 'clock'])(
      'are refused with null for %s, which is a value and not an absence',
      async (name) => {
        const options = untyped({ masters: 'memory', [name]: null });
        expect((await refusalOf(() => boot({ imports: [RedlockModule.forRoot(options)] }))).option).toBe(name);
      },
    );

    it.each<[string, () => unknown, string]>([
      ['a list with a hole', () => Object.assign(new Array(2), { 0: memoryMasters()[0] }), 'masters[1]'],
      ['half a master', () => [{ ask: () => undefined }], 'masters[0]'],
      [
        'a master without a name',
        () => [Object.assign(Object.create(memoryMasters()[0]!) as object, { name: 5 })],
        'masters[0]',
      ],
    ])('are refused with %s as masters', async (_, masters, option) => {
      const start = () => boot({ imports: [RedlockModule.forRoot({ masters: untyped(masters()) })] });
      expect((await refusalOf(start)).option).toBe(option);
    });

    it('are refused with half a clock, or with nothing in place of the options of forRootAsync', async () => {
      const half = untyped({ masters: 'memory', clock: { read: () => 0 } });
      expect((await refusalOf(() => boot({ imports: [RedlockModule.forRoot(half)] }))).message).toBe(
        'clock must have the methods read, schedule, afterInput, got an object (Object)',
      );
      expect((await refusalOf(() => RedlockModule.forRootAsync(untyped(null)))).option).toBe('options');
    });

    it.each(['', 5, null, Symbol('x'), {}])('are refused with %p as the name of a lock service', async (service) => {
      const name = untyped(service);
      expect((await refusalOf(() => InjectLockService(name))).option).toBe('name');
      expect((await refusalOf(() => LockInterceptor('a', { ttl: 10, service: name }))).option).toBe(
        'LockInterceptor: service',
      );
      const decorate = WithLock('a', { ttl: 10, service: name }) as MethodDecorator;
      class Jobs {
        async run(): Promise<void> {}
      }
      const use = () => untyped(decorate(Jobs.prototype, 'run', { value: async () => Promise.resolve() }));
      expect((await refusalOf(use)).option).toBe('@WithLock on Jobs.run: service');
    });

    it.each([
      'redis://user:hunter2@host',
      'user:hunter2@host',
      { hots: 'a', password: 'hunter2' },
      [{ hots: 'a', password: 'hunter2' }],
      { masters: 'redis://user:hunter2@host' },
      { masters: { host: 'a', password: 'hunter2' } },
      { masters: [{ host: 'redis://user:hunter2@host' }] },
      { masters: [{ path: 'redis://user:hunter2@host' }] },
      { masters: ['redis://host?password=x@hunter2'] },
      { masters: 'cache.example:6380,password=hunter2,ssl=True' },
      { masters: '127.0.0.1:6379:hunter2' },
      { masters: ['redis://hunter2%40host'] },
      { masters: 'memory', password: 'hunter2' },
    ])('never print a password in %j', async (options) => {
      const error = await refusalOf(() => boot({ imports: [RedlockModule.forRoot(untyped(options))] }));
      expect([error.message, error.stack, JSON.stringify(error), inspect(error)].join('\n')).not.toContain('hunter2');
    });
  });
});
