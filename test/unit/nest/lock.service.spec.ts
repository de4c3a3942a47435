import { AsyncLocalStorage } from 'node:async_hooks';
import Stream, { Readable, Writable } from 'node:stream';
import { StreamableFile } from '@nestjs/common';
import { describe, expect, it, jest } from '@jest/globals';
import {
  type AcquireOptions,
  type Lock,
  type LockedMethodOptions,
  LockLostError,
  RedlockConfigError,
  WithLock,
} from 'nestjs-redlock';
import { ManualClock, memoryLockService, memoryMasters, withLocks } from 'nestjs-redlock/testing';
import { defer, Observable, of, take } from 'rxjs';
import { LockContext, LockScope } from '../../../lib/nest/lock-scope.js';
import { resolveResources } from '../../../lib/settings/resources.js';
import { resolveFixedKey } from '../../../lib/nest/lock-options.js';
import { LockedStream } from '../../../lib/nest/locked-stream.js';
import { maxListenersOf } from '../../support/listeners.js';

// Protocol 7.6
describe('Work whose lock another holder had meanwhile, as the release shows', () => {
  class Jobs {
    @WithLock('a')
    run(work: () => unknown): Promise<unknown> {
      return Promise.resolve(work());
    }
  }

  it.each(['withLock', 'a decorated method'])('is no success, and its own error stays: %s', async (how) => {
    const clock = new ManualClock();
    const masters = memoryMasters(3, clock);
    const locks = memoryLockService({ masters, clock });
    const other = memoryLockService({ masters, clock });
    const jobs = withLocks(new Jobs(), locks);
    const run = (work: () => unknown): Promise<unknown> =>
      (how === 'withLock' ? locks.withLock('a', work) : jobs.run(work)).catch((error: unknown) => error);
    const overlap = async (): Promise<void> => {
      for (const master of masters.slice(1)) master.flush();
      await other.withLock('a', () => undefined);
    };
    expect(await run(overlap)).toMatchObject({ code: 'LOCK_LOST', cause: 'gone' });
    const failure = new Error('of the work');
    expect(await run(() => overlap().then(() => Promise.reject(failure)))).toBe(failure);
    expect(await run(() => 'done')).toBe('done');
  });
});

describe('Work inside a lock of its call chain', () => {
  const reentrant = { reentrant: true };

  it('begins after the call has returned, like work that acquires a lock', async () => {
    const locks = memoryLockService();
    const steps: string[] = [];
    await locks.withLock('a', async () => {
      const nested = locks.withLock('a', reentrant, () => steps.push('began'));
      steps.push('called');
      await nested;
    });
    expect(steps).toEqual(['called', 'began']);
  });

  it('may be nested far deeper than the stack', async () => {
    const locks = memoryLockService({ clock: new ManualClock() });
    const nest = (depth: number): Promise<number> =>
      locks.withLock('a', reentrant, async () => (depth === 0 ? 0 : 1 + (await nest(depth - 1))));
    expect(await nest(20_000)).toBe(20_000);
    expect(await locks.tryAcquire('a')).not.toBeNull();
  });
});

describe('A refusal by a holder in the same process', () => {
  const clock = new ManualClock();
  const locks = memoryLockService({ clock, instance: 'web:1' });
  const refused = async (resource: string | string[], options: AcquireOptions = {}): Promise<unknown> => {
    const call = locks.acquire(resource, { wait: 100, ...options }).catch((error: unknown) => error);
    await clock.advance(100);
    return call;
  };

  it('names the method, since when, and the rest of the ttl, as for any holder', async () => {
    class Orders {
      @WithLock('a', '10s')
      pay(): Promise<void> {
        return new Promise((resolve) => void clock.schedule(2_000, resolve));
      }
    }
    const since = new Date(clock.read().wall);
    const paid = withLocks(new Orders(), locks).pay();
    await clock.advance(1_000);
    expect(await refused('a')).toMatchObject({
      message: `"a" is held by web:1 since ${since.toISOString()} (this process, @WithLock on Orders.pay): not acquired within 100 ms`,
      holder: { instance: 'web:1', since },
      retryAfter: 8_900,
      answers: [],
    });
    await clock.advance(1_000);
    await paid;
  });
});

describe('tryAcquire with a wait', () => {
  const clock = new ManualClock();
  const masters = memoryMasters(3, clock);
  const [locks, other] = [memoryLockService({ masters, clock }), memoryLockService({ masters, clock })];
  const KINDS: [string, string | string[], AcquireOptions][] = [
    ['one resource', 'a', {}],
    ['several resources', ['a', 'b'], {}],
    ['the only permit', 'a', { permits: 1 }],
    ['a shared lock behind an exclusive one', 'a', { mode: 'shared' }],
  ];

  it.each(KINDS)('gets what is released in that time, and null if nothing is: %s', async (_, resource, options) => {
    for (const holding of [other, locks]) {
      const held = await holding.acquire('a', options.permits === undefined ? {} : { permits: options.permits });
      let given: Lock | null | undefined;
      const asked = clock.read().monotonic;
      void locks.tryAcquire(resource, { ...options, wait: '2s' }).then((lock) => (given = lock));
      await clock.advance(1_900);
      expect(given).toBeUndefined();
      await clock.advance(100);
      expect([given, clock.read().monotonic - asked]).toEqual([null, 2_000]);

      const waiting = locks.tryAcquire(resource, { ...options, wait: '2s' });
      await clock.advance(300);
      await held.release();
      await clock.advance(1_700);
      await using lock = await waiting;
      expect(lock?.isHeld).toBe(true);
    }
  });

  it('makes one attempt if it is given none, whatever the wait of the module is', async () => {
    await using _ = await other.acquire('a');
    expect(await locks.tryAcquire('a')).toBeNull();
    expect(await locks.tryAcquire('a', { ttl: '5s' })).toBeNull();
  });
});

describe('Options of a call that have no prototype', () => {
  type Options = Omit<LockedMethodOptions, 'onLocked' | 'service'>;
  const bare = (options: object): Options => Object.assign(Object.create(null) as Options, options);

  /** Locks with the options, and returns how long the lock can be relied on. */
  async function decorated(options: Options): Promise<number> {
    const locks = memoryLockService({ clock: new ManualClock() });
    class Jobs {
      @WithLock('a', options)
      run(): Promise<number> {
        return Promise.resolve(locks.current('a')?.remaining() ?? 0);
      }
    }
    return withLocks(new Jobs(), locks).run();
  }
  const locks = memoryLockService({ clock: new ManualClock() });
  const remainingOf = async (lock: Lock | null): Promise<number> => {
    await using held = lock;
    return held?.remaining() ?? 0;
  };
  const CALLS: [string, (options: Options) => Promise<number>][] = [
    ['acquire', async (options) => remainingOf(await locks.acquire('a', options))],
    ['tryAcquire', async (options) => remainingOf(await locks.tryAcquire('a', options))],
    ['withLock', (options) => locks.withLock('a', options, (lock) => lock.remaining())],
    ['@WithLock', decorated],
  ];

  it.each(CALLS)('are read like any others: %s', async (_, call) => {
    expect(await call(bare({ ttl: 1_000, extend: false, mode: 'exclusive' }))).toBe(988);
    expect(await call(bare({}))).toBe(9_898);
  });

  it.each(CALLS)('are refused by name, like their values: %s', async (_, call) => {
    for (const options of [{ ttI: 1_000 }, { ttl: bare({}) }, { extend: bare({}) }, { mode: bare({}) }]) {
      const [name = ''] = Object.keys(options);
      await expect(call(bare(options))).rejects.toBeInstanceOf(RedlockConfigError);
      await expect(call(bare(options))).rejects.toThrow(name);
    }
  });
});

it('A service whose application has shut down no longer follows the promises of the process', () => {
  const disable = jest.spyOn(AsyncLocalStorage.prototype, 'disable');
  memoryLockService().close();
  expect(disable).toHaveBeenCalledTimes(1);
  disable.mockRestore();
});

const WHERE = '@WithLock on Orders.ship';

describe('resolveFixedKey', () => {
  it.each([
    ['order:#{id}', '#{id}', '(id: string) => `order:${id}`'],
    ['order:{0}', '{0}', '(argument0: string) => `order:${argument0}`'],
    ['orders/:orderId/lines', ':orderId', '(orderId: string) => `orders/${orderId}/lines`'],
    ['order::id', ':id', '(id: string) => `order:${id}`'],
    ['order:id', ':id', '(id: string) => `order:${id}`'],
  ])('refuses %j, and shows the function to write instead', (key, placeholder, written) => {
    expect(() => resolveFixedKey(WHERE, ['stock', key])).toThrow(RedlockConfigError);
    expect(() => resolveFixedKey(WHERE, ['stock', key])).toThrow(
      `${WHERE}: key must not contain ${placeholder}, which nothing replaces: write a function, such as ${written}, ` +
        `got "${key}"`,
    );
  });

  it('shows a function of the context for an interceptor', () => {
    expect(() => resolveFixedKey('LockInterceptor', 'cart:{id}', 'context: ExecutionContext')).toThrow(
      'such as (context: ExecutionContext) => `cart:${...}`',
    );
  });

  it.each(['report:daily', 'order:ids', 'a:b:c', 'C:/work', '10:30', 'id', 'identity:idle', '{}', 'f(x) { y }'])(
    'accepts %j, which has no placeholder',
    (key) => {
      expect(resolveFixedKey(WHERE, key)).toEqual([key]);
    },
  );
});

describe('resolveResources', () => {
  it('accepts braces, because a function has already filled in its values', () =>
    expect(resolveResources(`${WHERE}: key`, ['{tenant}:cart', 'route/:id'])).toEqual(['{tenant}:cart', 'route/:id']));

  it.each([
    ...['undefined', 'order-undefined', 'a.undefined.b', 'order/undefined/items', 'order: undefined'],
    ...['seat[undefined]', '{undefined}:cart', 'a|undefined', 'path:docs/undefined'],
  ])('refuses %j, because all calls with that mistake would share one lock', (key) =>
    expect(() => resolveResources(`${WHERE}: key`, key)).toThrow(`${WHERE}: key must not contain undefined`),
  );

  it.each([
    ...['undefinedBehaviour', 'article:undefined-behaviour-in-c', 'article:why-is-x-undefined', 'article/undefined.md'],
    ...['file:docs/undefined.md', 'tag:undefined behaviour', 'log:Cannot read properties of undefined'],
    ...['tag:undefined%20behaviour', 'is undefined meant?', `tag:${JSON.stringify('undefined')}`],
  ])('accepts %j, in which the word is meant', (name) =>
    expect(resolveResources(`${WHERE}: key`, name)).toEqual([name]),
  );
});

/** A stream that emits while the handler runs, and does not end by itself. */
function streaming() {
  const seen = { isOver: false };
  const values = new Observable<number>((subscriber) => {
    for (const value of [1, 2, 3]) subscriber.next(value);
    return () => {
      seen.isOver = true;
    };
  });
  return { values, seen };
}

const HANDLER = {
  where: 'LockInterceptor on Carts.list',
  method: () => undefined,
  answersItself: false,
  isKnown: true,
  mayIterate: false,
};

/** The values of a handler under a lock. The handler is not declared to return an Observable. */
function underLock(lock: Lock, values: Observable<unknown>): Observable<unknown> {
  const hold = LockScope.of(lock, new LockContext());
  return new Observable((subscriber) => {
    const stream = new LockedStream(hold, { handle: () => values }, subscriber, undefined, HANDLER);
    return () => stream.unsubscribe();
  });
}

describe('The stream of a handler', () => {
  it('ends, and with it the lock, if its listener leaves before the handler has returned', async () => {
    const lock = await memoryLockService().acquire('a');
    const { values, seen } = streaming();
    const received: unknown[] = [];
    underLock(lock, values)
      .pipe(take(1))
      .subscribe((value) => received.push(value));
    expect([received, seen.isOver, lock.isHeld]).toEqual([[1], true, false]);
    await lock.release();
  });

  it('ends with the loss if the lock was lost before the first value', async () => {
    const clock = new ManualClock();
    const lock = await memoryLockService({ clock }).acquire('a', { ttl: 1_000, extend: false });
    const { values, seen } = streaming();
    const late = defer(() => {
      clock.stall(1_000);
      return values;
    });
    let error: unknown;
    underLock(lock, late).subscribe({ error: (reason: unknown) => (error = reason) });
    expect([error, seen.isOver]).toEqual([expect.any(LockLostError), true]);
  });

  it('is refused if a generator would go on after the lock, without a response that shows when it ends', async () => {
    const lock = await memoryLockService().acquire('a');

    const late = (async function* () {
      yield 1;
    })();
    let error: unknown;
    underLock(lock, of(late)).subscribe({ error: (reason: unknown) => (error = reason) });
    expect(error).toMatchObject({ message: expect.stringContaining(`${HANDLER.where} cannot lock what runs after`) });
    expect(lock.isHeld).toBe(false);
  });

  it('does not begin under a lock that has ended', async () => {
    const clock = new ManualClock();
    const lock = await memoryLockService({ clock }).acquire('a', { ttl: 1_000, extend: false });
    clock.stall(1_000);
    let [error, runs]: [unknown, number] = [undefined, 0];
    const handler = defer(() => [++runs]);
    underLock(lock, handler).subscribe({ error: (reason: unknown) => (error = reason) });
    expect([error, runs]).toEqual([expect.any(LockLostError), 0]);
  });
});

it('The signal of a lock may have any number of listeners without a warning of Node', async () => {
  const { signal } = await memoryLockService().acquire('a');
  expect(maxListenersOf(signal)).toBe(0);
});

describe('Work under a lock', () => {
  const GENERATOR = async function* (): AsyncGenerator<number> {
    yield Promise.resolve(1);
  };

  it.each([
    ['an async generator', GENERATOR],
    ['an Observable', () => defer(() => [1])],
    ['a promise of one', async () => Promise.resolve(GENERATOR())],
    ['another async iterable', () => ({ [Symbol.asyncIterator]: GENERATOR })],
    ['an iterator', () => new Map().values()],
    ['a stream', () => Readable.from(GENERATOR())],
    ['a stream of an older package', () => Object.assign(new Stream(), { readable: true })],
    ['a stream of the web', () => new ReadableStream()],
    ['a stream of the web that cannot be iterated', () => ({ pipeTo: () => undefined })],
    ['a file', () => new StreamableFile(Readable.from(GENERATOR()))],
    ['a response of the web', () => new Response(new ReadableStream())],
  ])('is refused if it returns what would run without the lock: %s', async (_, work: () => unknown) => {
    const refusal =
      /^withLock cannot lock what runs after the method has returned: await it inside of the work, or use LockInterceptor on the handler/;
    await expect(memoryLockService().withLock('a', work)).rejects.toThrow(refusal);
  });

  it.each([
    ['of promises', [1, 2]],
    ['with a promise', [0, 1]],
  ])('is refused if it returns a list %s, which nothing awaits under the lock', async (_, list) => {
    const refusal =
      /^withLock cannot lock what runs after the method has returned: await its promises, as by Promise.all/;
    const failing = async (each: number) => Promise.reject(new Error(`${each} failed, and ends no process`));
    const work = async () => list.map((each) => (each === 0 ? each : failing(each)));
    await expect(memoryLockService().withLock('a', work)).rejects.toThrow(refusal);
  });

  it.each([
    ['a list', [1]],
    ['an empty list', []],
    ['a map', new Map()],
    ['bytes', new Uint8Array(1)],
    ['a stream that is only written, as the response of Express', new Writable()],
    ['a response without a body', new Response(null)],
    ['a response that was fetched', { bodyUsed: false, type: 'basic', body: {} }],
  ])('may return what is complete: %s', async (_, result: unknown) => {
    await expect(memoryLockService().withLock('a', () => result)).resolves.toBe(result);
  });

  it('may return a promise that could be iterated as well: it is awaited', async () => {
    const list = Object.assign(Promise.resolve('the first page'), { [Symbol.asyncIterator]: GENERATOR });
    await expect(memoryLockService().withLock('a', () => list)).resolves.toBe('the first page');
  });

  it.each([
    ['begins when it is awaited', {}],
    ['is a promise of its own kind', new Promise<unknown>(() => undefined)],
  ])('includes a query that %s', async (_, query) => {
    const locks = memoryLockService();
    const then = (resolve: (result: unknown) => void): void => resolve(locks.current()?.resources);
    const work = () => Object.assign(query, { then }) as PromiseLike<unknown>;
    await expect(locks.withLock('a', work)).resolves.toEqual(['a']);
  });

  it('fails with the error of a query', async () => {
    const failing = {
      then(_: unknown, reject: (error: unknown) => void) {
        reject(new Error('no such table'));
      },
    };
    const run = memoryLockService().withLock('a', () => failing as unknown as PromiseLike<unknown>);
    await expect(run).rejects.toThrow('no such table');
  });
});
