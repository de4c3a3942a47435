import { describe, expect, it, jest } from '@jest/globals';
import { Controller, Scope } from '@nestjs/common';
import {
  InjectLockService,
  type LockedMethodOptions,
  LockInterceptor,
  LockService,
  RedlockConfigError,
  RedlockModule,
  WithLock,
} from 'nestjs-redlock';
import { memoryMasters } from 'nestjs-redlock/testing';
import { boot, closeAll, refusalOf } from './support/applications.js';
import { jobUnder, Locks } from './support/locks.js';
import { inspect } from 'node:util';
import { anything, optionObjects } from '../support/hostile.js';
import { fc } from '../support/properties.js';

jest.setTimeout(60_000);

/** What a caller without types could write. */
const untyped = (value: unknown): never => value as never;

describe('Validation at boot', () => {
  describe('Invalid options are found at boot on', () => {
    const Wrong = jobUnder('a', '2h');

    it.each([
      ['a request-scoped provider', { provide: 'W', useClass: Wrong, scope: Scope.REQUEST }],
      ['a transient provider', { provide: 'W', useClass: Wrong, scope: Scope.TRANSIENT }],
      ['a value', { provide: 'W', useValue: new Wrong() }],
      ['the result of a factory', { provide: 'W', useFactory: () => new Wrong() }],
    ])('%s', async (_, provider) => {
      const error = await refusalOf(() => boot({ imports: [new Locks(3).module()], providers: [provider] }));
      expect(error.option).toBe('@WithLock on Job.run: ttl');
    });

    it('a controller and a subclass', async () => {
      @Controller()
      class Subclass extends Wrong {}
      const error = await refusalOf(() => boot({ imports: [new Locks(3).module()], controllers: [Subclass] }));
      expect(error.option).toBe('@WithLock on Job.run: ttl');
    });

    it('a method of another service, to which only the options of that service apply', async () => {
      const [main, billing] = [new Locks(3, { maxTtl: '3h' }), new Locks(3, { name: 'billing' })];
      await boot({ imports: [main.module(), billing.module()], providers: [Wrong] });
      const WrongBilling = jobUnder('a', { ttl: '2h', service: 'billing' });
      const start = () => boot({ imports: [main.module(), billing.module()], providers: [WrongBilling] });
      expect((await refusalOf(start)).option).toBe('@WithLock on Job.run: ttl');
    });
  });
});

describe.each(['redis+sentinel://127.0.0.1:1/locks', 'redis+cluster://127.0.0.1:1'])('Beside the master %s', (url) => {
  const masters = [url, 'redis://127.0.0.1:2', 'redis://127.0.0.1:3'];

  it('the restart guard is off by default', async () => {
    const app = await boot({ imports: [RedlockModule.forRoot({ masters, lazyConnect: true })] });
    expect(app.get(LockService).status().masters).toHaveLength(3);
  });

  it('the restart guard is refused', async () => {
    const start = () => boot({ imports: [RedlockModule.forRoot({ masters, restartGuard: true })] });
    expect((await refusalOf(start)).message).toMatch(/^restartGuard must be false with a (?:Sentinel group|cluster)/);
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

    it('are refused with nothing instead of the options of forRootAsync', async () => {
      expect((await refusalOf(() => RedlockModule.forRootAsync(untyped(null)))).option).toBe('options');
    });

    it.each(['', 5, null])('are refused with %p as the name of a lock service', async (service) => {
      const name = untyped(service);
      expect((await refusalOf(() => InjectLockService(name))).option).toBe('name');
      expect((await refusalOf(() => LockInterceptor('a', { ttl: 10, service: name }))).option).toBe(
        'LockInterceptor: service',
      );
      const decorate = WithLock('a', { ttl: 10, service: name });
      class Jobs {
        async run(): Promise<void> {}
      }
      const use = (): void => {
        decorate(Jobs.prototype, 'run', { value: async () => Promise.resolve() });
      };
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
