import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Injectable, UseInterceptors } from '@nestjs/common';
import {
  type Lock,
  LockInterceptor,
  type LockedMethodOptions,
  LockNotAcquiredError,
  LockReentryError,
  LockService,
  RedlockModule,
  WithLock,
  type WithLockOptions,
} from 'nestjs-redlock';
import { Gate } from '../support/gate.js';
import { boot, listen, refusalOf } from './support/applications.js';
import { jobUnder, LocksPerTest } from './support/locks.js';

let gate: Gate;

beforeEach(() => {
  gate = new Gate();
});
afterEach(() => gate.stayOpen());

const locks = new LocksPerTest(3);

/** What callers without types could write. */
const anything = (value: unknown): LockedMethodOptions => value as LockedMethodOptions;

@Injectable()
class Prices {
  constructor(readonly locks: LockService) {}

  @WithLock('prices', { mode: 'shared', wait: 0 })
  async read(): Promise<Lock | undefined> {
    const lock = this.locks.current('prices');
    await gate.pass();
    return lock;
  }

  @WithLock('prices', { wait: 0 })
  async replace(): Promise<Lock | undefined> {
    const lock = this.locks.current('prices');
    await gate.pass();
    return lock;
  }

  @WithLock('prices', { onLocked: 'skip' })
  async replaceUnlessRead(): Promise<string | undefined> {
    return 'replaced';
  }
}

@Injectable()
class Stripe {
  constructor(readonly locks: LockService) {}

  @WithLock('stripe', { permits: 2, wait: 0 })
  async call(): Promise<number | undefined> {
    const slot = this.locks.current('stripe')?.slot;
    await gate.pass();
    return slot;
  }

  @WithLock('stripe', { permits: 2, onLocked: 'skip' })
  async callUnlessBusy(): Promise<string | undefined> {
    return 'called';
  }
}

@Controller()
class Pages {
  constructor(readonly locks: LockService) {}

  @Get('prices')
  @UseInterceptors(LockInterceptor('prices', { mode: 'shared', wait: 0 }))
  async prices(): Promise<string | undefined> {
    await gate.pass();
    return this.locks.current()?.mode;
  }

  @Get('calls')
  @UseInterceptors(LockInterceptor('stripe', { permits: 2, onLocked: { status: 429 } }))
  async calls(): Promise<string> {
    await gate.pass();
    return String(this.locks.current()?.slot);
  }
}

it('A shared lock of a decorator is held by several calls of several applications at the same time, and excludes exclusive calls', async () => {
  const [first, second] = [
    (await boot({ imports: [locks.module()], providers: [Prices] })).get(Prices),
    (await boot({ imports: [locks.module()], providers: [Prices] })).get(Prices),
  ];
  const reads = [first.read(), first.read(), second.read()];
  await gate.arrived(3);
  expect(gate.crowd).toBe(3);
  await expect(second.locks.inspect('prices')).resolves.toMatchObject({ state: 'held', sharedBy: 3 });
  await expect(first.replace()).rejects.toThrow(LockNotAcquiredError);
  await expect(second.replaceUnlessRead()).resolves.toBeUndefined();
  gate.open();
  expect((await Promise.all(reads)).map((lock) => lock?.mode)).toEqual(['shared', 'shared', 'shared']);
  await expect(second.replaceUnlessRead()).resolves.toBe('replaced');
});

// Protocol 11.9
describe('A nested call', () => {
  const [SHARED, EXCLUSIVE, PERMIT] = [{ mode: 'shared' }, {}, { permits: 2 }] as const;

  /** The kind of the lock inside of another one on the same resource, which is that lock. */
  async function nested(outer: WithLockOptions, inner: WithLockOptions): Promise<unknown> {
    const service = (await boot({ imports: [locks.module()] })).get(LockService);
    return service.withLock('prices', outer, (around) =>
      service.withLock('prices', inner, (inside) => inside === around && [inside.mode, typeof inside.slot]),
    );
  }

  it.each<[string, WithLockOptions, WithLockOptions, unknown]>([
    ['a shared lock inside of a shared lock', SHARED, SHARED, ['shared', 'undefined']],
    ['a shared lock inside of an exclusive lock', EXCLUSIVE, SHARED, ['exclusive', 'undefined']],
    ['a permit inside of a permit', PERMIT, PERMIT, ['exclusive', 'number']],
  ])(
    'for %s runs inside of it with reentrant: true, and is an error at once without',
    async (_, outer, inner, lock) => {
      expect(await nested(outer, { ...inner, reentrant: true })).toEqual(lock);
      await expect(nested(outer, inner)).rejects.toThrow(LockReentryError);
    },
  );

  it('for an exclusive lock inside of a shared one is an error at once, also with reentrant: true', async () => {
    for (const reentrant of [false, true]) {
      await expect(nested(SHARED, { reentrant })).rejects.toThrow(
        /^this call chain holds a shared lock on "prices": the nested exclusive call .*Take the exclusive lock in the outer call/,
      );
    }
  });

  it('for a permit says why it needs reentrant: true', async () => {
    await expect(nested(PERMIT, PERMIT)).rejects.toThrow(
      'this call chain already holds a permit of "prices": chains that hold one and ask for another would wait for each ' +
        'other once all are taken. Pass `reentrant: true` to run the nested call inside the permit that is held',
    );
  });
});

it('A permit of a decorator is held by as many calls as there are permits, in all applications together', async () => {
  const [first, second] = [
    (await boot({ imports: [locks.module()], providers: [Stripe] })).get(Stripe),
    (await boot({ imports: [locks.module()], providers: [Stripe] })).get(Stripe),
  ];
  const calls = [first.call(), second.call()];
  await gate.arrived(2);
  await expect(first.locks.inspectPermits('stripe', 2)).resolves.toMatchObject({ permits: 2, taken: 2 });
  // Without types, a call may leave the number out.
  await expect(first.locks.inspectPermits('stripe', undefined as unknown as number)).rejects.toThrow(
    'permits must be an integer from 1 to 1000, got undefined',
  );
  await expect(first.call()).rejects.toThrow(LockNotAcquiredError);
  await expect(second.callUnlessBusy()).resolves.toBeUndefined();
  gate.open();
  expect((await Promise.all(calls)).sort()).toEqual([0, 1]);
  await expect(second.callUnlessBusy()).resolves.toBe('called');
});

it('LockInterceptor takes shared locks and permits', async () => {
  const { app, url } = await listen({ imports: [locks.module()], controllers: [Pages] });
  const ask = async (path: string): Promise<string> => {
    const response = await fetch(`${url}/${path}`);
    return `${response.status} ${await response.text()}`;
  };
  const shared = [ask('prices'), ask('prices')];
  const permits = [ask('calls'), ask('calls')];
  await gate.arrived(4);
  expect(gate.crowd).toBe(4);
  expect(await ask('calls')).toBe('429 ');
  await expect(app.get(LockService).tryAcquire('prices')).resolves.toBeNull();
  gate.open();
  expect(await Promise.all(shared)).toEqual(['200 shared', '200 shared']);
  expect((await Promise.all(permits)).sort()).toEqual(['200 0', '200 1']);
});

it('enabled: false refuses neither a shared lock, nor an exclusive one beside it, nor a permit', async () => {
  const imports = [RedlockModule.forRoot({ masters: [], enabled: false })];
  const app = await boot({ imports, providers: [Prices, Stripe] });
  const [prices, stripe] = [app.get(Prices), app.get(Stripe)];
  const work = [prices.read(), prices.read(), prices.replace(), stripe.call(), stripe.call(), stripe.call()];
  await gate.arrived(6);
  expect(gate.crowd).toBe(6);
  gate.open();
  await Promise.all(work);
});

describe('At boot', () => {
  async function messageOf(providers: (new () => object)[], controllers: (new () => object)[] = []): Promise<string> {
    return (await refusalOf(boot({ imports: [locks.module()], providers, controllers }))).message;
  }

  type Declaration = readonly [string | readonly string[], LockedMethodOptions?];

  function locking(...declarations: readonly Declaration[]) {
    return declarations.map(([key, options]) => jobUnder(key, options));
  }

  const NO_EXCLUSION = ': permits and a lock of one name do not exclude each other. ';
  const SAME = 'Give both the same `permits`, or one of them another name';
  const FOUR: Declaration = ['a', { permits: 4 }];

  it.each<[Declaration[], string]>([
    [[['a', anything({ mode: 'x' })]], `: mode must be 'exclusive' or 'shared', got "x"`],
    [[['a', { permits: 0 }]], ': permits must be an integer from 1 to 1000, got 0'],
    [[['a', { permits: 1001 }]], ': permits must be an integer from 1 to 1000, got 1001'],
    [[['a', anything({ permits: '5' })]], ': permits must be an integer from 1 to 1000, got "5"'],
    [[['a', { permits: 5, mode: 'shared' }]], `: permits cannot be given with mode: 'shared', got 5`],
    [[['a', { minHold: '1s', mode: 'shared' }]], `: minHold cannot be given with mode: 'shared', got "1s"`],
    [
      [['a', { permits: 1 }], FOUR],
      ` takes one of 4 permits of "a" and @WithLock on Job.run takes the only permit of it: together they admit 4 holders. ${SAME}`,
    ],
    [[['a'], FOUR], ` takes one of 4 permits of "a" and @WithLock on Job.run takes a lock on it${NO_EXCLUSION}${SAME}`],
    [
      [FOUR, [['b', 'a']]],
      ` takes a lock on "a" and @WithLock on Job.run takes one of 4 permits of it${NO_EXCLUSION}${SAME}`,
    ],
    [
      [FOUR, ['a', { mode: 'shared' }]],
      ` takes a shared lock on "a" and @WithLock on Job.run takes one of 4 permits of it${NO_EXCLUSION}Give one of them another name`,
    ],
    [
      [[['a', 'b'], { permits: 4 }]],
      ': permits belong to one resource, not to several: "a", "b". Give one name, or leave out `permits`',
    ],
  ])('%j is refused', async (declarations, message) => {
    expect(await messageOf(locking(...declarations))).toBe(`@WithLock on Job.run${message}`);
  });

  it('one name with permits of a decorator and as the lock of an interceptor is refused', async () => {
    @Controller()
    class Carts {
      @Get()
      @UseInterceptors(LockInterceptor('a'))
      get(): void {}
    }
    expect(await messageOf(locking(['a', { permits: 4 }]), [Carts])).toBe(
      '@WithLock on Job.run takes one of 4 permits of "a" and LockInterceptor on Carts.get takes a lock on it' +
        NO_EXCLUSION +
        SAME,
    );
  });

  it('permits of several names are known from a key function when the method is called', async () => {
    const Job = jobUnder(() => ['a', 'b'], { permits: 4 });
    const app = await boot({ imports: [locks.module()], providers: [Job] });
    await expect(app.get(Job).run()).rejects.toThrow('@WithLock on Job.run: permits belong to one resource');
    await expect(app.get(LockService).acquire(['a', 'b'], { permits: 4 })).rejects.toThrow(
      /^permits belong to one resource, not to several: "a", "b"\. /,
    );
  });

  it('permits whose names would keep a process and its masters busy are refused', async () => {
    const app = await boot({ imports: [locks.module()] });
    const service = app.get(LockService);
    const [name, refusal] = ['x'.repeat(2_000), 'permits must be at most 262 for a name of 2000 characters, got 263'];
    await expect(service.acquire(name, { permits: 263 })).rejects.toThrow(refusal);
    await expect(service.inspectPermits(name, 263)).rejects.toThrow(refusal);
    await (await service.acquire(name, { permits: 262 })).release();
  });

  it('a shared and an exclusive use of one name, and several uses of equal permits, are fine', async () => {
    const providers = locking(['a'], ['a', { mode: 'shared' }], ['b', { permits: 2 }], ['b', { permits: 2 }]);
    await expect(boot({ imports: [locks.module()], providers })).resolves.toBeDefined();
  });
});
