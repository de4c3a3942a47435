import { beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Injectable, UseInterceptors } from '@nestjs/common';
import {
  type HeldLock,
  LockInterceptor,
  LockReentryError,
  LockService,
  WithLock,
  type WithLockOptions,
} from 'nestjs-redlock';
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import type { IncomingMessage } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import { ADAPTERS } from './support/adapters.js';
import { boot, listen } from './support/applications.js';
import { deferred, settle } from './support/deferred.js';
import { LocksPerTest } from './support/locks.js';

const locks = new LocksPerTest(1);
let service: LockService;

beforeEach(async () => {
  service = (await boot({ imports: [locks.module()] })).get(LockService);
});

describe('current()', () => {
  it('is undefined outside of a lock, and the innermost lock or that on a given resource inside, at any depth', async () => {
    expect(service.current()).toBeUndefined();
    await service.withLock(['a', 'b'], '5s', async (outer) => {
      expect(service.current()).toBe(outer);
      await turn();
      expect(service.current()).toBe(outer);
      await service.withLock('c', '5s', async (inner) => {
        await turn();
        expect(['c', 'b', 'd'].map((name) => service.current(name))).toEqual([inner, outer, undefined]);
        expect(service.current()).toBe(inner);
      });
      expect(service.current()).toBe(outer);
    });
    expect(service.current()).toBeUndefined();
  });

  it('keeps concurrent calls apart', async () => {
    const seen = ['a', 'b', 'c'].map((name) =>
      service.withLock(name, '5s', async () => {
        await turn();
        return service.current()?.resources;
      }),
    );
    expect(await Promise.all(seen)).toEqual([['a'], ['b'], ['c']]);
  });

  it('belongs to one service, and another service does not see it', async () => {
    const other = (await boot({ imports: [locks.module()] })).get(LockService);
    await service.withLock('a', '5s', async () => {
      expect(other.current()).toBeUndefined();
      await expect(other.acquire('a', { ttl: '5s', wait: 0 })).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
      await other.withLock('b', '5s', async (inner) => {
        expect(other.current()).toBe(inner);
        expect(service.current()?.resources).toEqual(['a']);
      });
    });
  });

  it('is not a lock that was acquired by hand', async () => {
    await using _ = await service.acquire('a', '5s');
    expect(service.current()).toBeUndefined();
  });
});

describe('A nested call for a resource that its call chain holds', () => {
  it.each([
    ['withLock', () => service.withLock('a', '5s', () => 'ran')],
    ['acquire', () => service.acquire('a', '5s')],
    ['tryAcquire', () => service.tryAcquire('a', '5s')],
    ['withLock of several', () => service.withLock(['b', 'a'], '5s', () => 'ran')],
  ])('%s fails at once instead of waiting for itself', async (_, nested) => {
    await service.withLock('a', '5s', async () => {
      await expect(nested()).rejects.toThrow(LockReentryError);
      await expect(nested()).rejects.toThrow('reentrant: true');
    });
  });

  it('runs inside the lock with reentrant: true, also if that covers more, and leaves it to the outer call', async () => {
    await service.withLock(['a', 'b'], '5s', async (outer) => {
      await service.withLock('b', { ttl: '5s', reentrant: true }, async (inner) => {
        expect(inner).toBe(outer);
        expect(service.current()).toBe(outer);
      });
      expect(outer.isHeld).toBe(true);
    });
  });

  it('fails even with reentrant: true if the lock covers fewer resources', async () => {
    await service.withLock('a', '5s', async () => {
      const nested = service.withLock(['a', 'b'], { ttl: '5s', reentrant: true }, () => 'ran');
      await expect(nested).rejects.toThrow('take all of them together in the outer call');
    });
  });

  describe('with parallel calls of one chain', () => {
    let stock: number;
    /** Reads, yields to others, and writes. */
    const take = () =>
      service.withLock('stock', { ttl: '5s', reentrant: true }, async () => {
        const seen = stock;
        await settle();
        stock = seen - 1;
      });
    beforeEach(() => {
      stock = 10;
    });

    it('does not separate them: both are inside the one lock, and an update is lost', async () => {
      await service.withLock('stock', '5s', () => Promise.all([take(), take()]));
      expect(stock).toBe(9);
    });
  });

  describe('that a queue of the application starts when a task of the holder ends', () => {
    /** One after the other, each from the end of the one before: as p-queue, Bottleneck, async and concatMap do. */
    class Queue {
      private readonly tasks: (() => Promise<void>)[] = [];

      add<T>(task: () => Promise<T>): Promise<T> {
        return new Promise((resolve, reject) => {
          this.tasks.push(() => task().then(resolve, reject));
          if (this.tasks.length === 1) void this.next();
        });
      }

      private async next(): Promise<void> {
        await this.tasks[0]?.();
        this.tasks.shift();
        if (this.tasks.length > 0) void this.next();
      }
    }

    const outcomeWith = async (
      options: WithLockOptions,
      bind: (task: () => Promise<boolean>) => () => Promise<boolean>,
    ) => {
      const queue = new Queue();
      const [task, work] = [deferred(), deferred()];
      const holder = service.withLock('a', '5s', async () => {
        await queue.add(() => task.promise);
        await work.promise;
      });
      await settle();
      const inside = (): boolean => service.current('a')?.mode === 'exclusive';
      const other = queue.add(bind(() => service.withLock('a', options, inside))).catch((error: unknown) => error);
      task.resolve();
      await settle();
      work.resolve();
      await holder;
      await locks.clock.advance(1_000);
      return other;
    };
    it.each(['exclusive', 'shared'] as const)('never joins that lock unasked: %s', async (mode) => {
      const error = await outcomeWith({ mode }, (task) => task);
      expect(error).toBeInstanceOf(LockReentryError);
      expect((error as Error).message).toContain('give it AsyncResource.bind(task)');
    });

    it('waits for that lock if the task is bound to its own call chain', async () => {
      expect(await outcomeWith({ wait: '5s' }, (task) => AsyncResource.bind(task))).toBe(true);
    });
  });

  it('follows the same rules between decorated methods', async () => {
    @Injectable()
    class Account {
      @WithLock((id: string) => id)
      async close(id: string): Promise<boolean> {
        return this.flush(id);
      }

      @WithLock((id: string) => id, { reentrant: true })
      async flush(_: string): Promise<boolean> {
        return locks.held;
      }

      @WithLock((id: string) => id)
      async twice(id: string): Promise<boolean> {
        return this.close(id);
      }
    }
    const app = await boot({ imports: [locks.module()], providers: [Account] });
    await expect(app.get(Account).close('1')).resolves.toBe(true);
    await expect(app.get(Account).twice('1')).rejects.toThrow(LockReentryError);
  });

  it('fails with the loss of the surrounding lock', async () => {
    const work = deferred();
    const nested = deferred<unknown>();
    const call = service.withLock('a', '5s', async () => {
      const inner = service.withLock('a', { ttl: '5s', reentrant: true }, () => work.promise);
      await inner.catch(nested.resolve);
    });
    await settle();
    locks.masters[0]!.pause();
    await locks.clock.advance(5_000);
    work.resolve();
    await expect(nested.promise).resolves.toMatchObject({ code: 'LOCK_LOST' });
    await expect(call).rejects.toMatchObject({ code: 'LOCK_LOST' });
    locks.masters[0]!.resume();
  });

  it('keeps the lock if it outlives the outer call, and so never runs unlocked', async () => {
    const work = deferred<string>();
    let floating: Promise<string> | undefined;
    await service.withLock('a', '5s', () => {
      floating = service.withLock('a', { ttl: '5s', reentrant: true }, () => work.promise);
    });
    await locks.clock.advance(20_000);
    await expect(service.tryAcquire('a')).resolves.toBeNull();
    work.resolve('done');
    await expect(floating).resolves.toBe('done');
    await (await service.acquire('a', { ttl: '5s', wait: 0 })).release();
  });
});

it('Unawaited work sees that its lock is gone, and acquires its own one', async () => {
  const later = deferred();
  let floating: Promise<boolean> | undefined;
  await service.withLock('a', '5s', () => {
    floating = later.promise.then(() => {
      expect(() => service.current()?.assertHeld()).toThrow(expect.objectContaining({ cause: 'released' }));
      return service.withLock('a', '5s', () => locks.held);
    });
  });
  later.resolve();
  await expect(floating).resolves.toBe(true);
});

it.each(ADAPTERS)(
  'A key function runs in the asynchronous context of its request on $platform',
  async ({ adapter }) => {
    const tenants = new AsyncLocalStorage<unknown>();
    const key = (): string => `tenant:${tenants.getStore() as string}:cart`;
    @Controller()
    class Carts {
      @Get('decorated')
      @WithLock(key)
      async decorated(): Promise<unknown> {
        return service.current()?.resources;
      }

      @Get('intercepted')
      @UseInterceptors(LockInterceptor(key))
      intercepted(): unknown {
        return service.current()?.resources;
      }
    }
    const { app, url } = await listen({ imports: [locks.module()], controllers: [Carts] }, adapter(), (application) =>
      application.use(({ headers }: IncomingMessage, _: unknown, next: () => void) =>
        tenants.run(headers['x-tenant'], next),
      ),
    );
    service = app.get(LockService);
    for (const path of ['decorated', 'intercepted']) {
      const answers = ['acme', 'globex'].map(async (tenant) => {
        const response = await fetch(`${url}/${path}`, { headers: { 'x-tenant': tenant } });
        return response.json();
      });
      await expect(Promise.all(answers)).resolves.toEqual([['tenant:acme:cart'], ['tenant:globex:cart']]);
    }
  },
);

it('A process knows the locks, shared locks and permits that it holds now, and which method holds them', async () => {
  const seen: (readonly HeldLock[])[] = [];
  @Injectable()
  class Orders {
    constructor(private readonly service: LockService) {}

    @WithLock((id: string) => `order:${id}`)
    async ship(_id: string): Promise<void> {
      seen.push(this.service.held());
    }
  }
  const app = await boot({ imports: [locks.module()], providers: [Orders] });
  service = app.get(LockService);
  expect(service.held()).toEqual([]);

  const since = new Date(locks.clock.read().wall);
  const shared = await service.acquire(['a', 'b'], { mode: 'shared', ttl: '10s' });
  const permit = await service.acquire('stripe', { permits: 2, ttl: '5s' });
  await app.get(Orders).ship('7');
  const common = { since, remaining: expect.any(Number) };
  const own = { ...common, caller: undefined };
  expect(seen).toEqual([
    [
      { ...own, resources: ['a', 'b'], mode: 'shared', slot: undefined },
      { ...own, resources: ['stripe'], mode: 'exclusive', slot: permit.slot },
      { ...common, resources: ['order:7'], mode: 'exclusive', slot: undefined, caller: '@WithLock on Orders.ship' },
    ],
  ]);
  expect(seen[0]![0]!.remaining).toBe(shared.remaining());

  // One that has ended is not held, whether or not it was released.
  await locks.clock.advance(6_000);
  expect(service.held().map(({ resources }) => resources)).toEqual([['a', 'b']]);
  await shared.release();
  expect(service.held()).toEqual([]);
  await permit.release();
});

it('A lock knows for how long its call has waited, and in how many attempts', async () => {
  const [one, other] = [service, (await boot({ imports: [locks.module()] })).get(LockService)];
  const first = await one.acquire('a', { ttl: '10s' });
  expect([first.waited, first.attempts]).toEqual([0, 1]);
  const [here, elsewhere] = [one, other].map((each) => each.acquire('a', { wait: '20s', ttl: '10s' }));
  await locks.clock.advance(3_000);
  await first.release();
  await locks.clock.advance(100);
  const second = await Promise.race([here!, elsewhere!]);
  expect(second.waited).toBeGreaterThanOrEqual(2_900);
  expect(second.waited).toBeLessThanOrEqual(3_100);
  await second.release();
  await locks.clock.advance(100);
  for (const lock of await Promise.all([here!, elsewhere!])) await lock.release();
  expect((await elsewhere!).attempts).toBeGreaterThan(1);
});

it('A process without locking holds none', async () => {
  service = (await boot({ imports: [locks.module({ enabled: false })] })).get(LockService);
  const lock = await service.acquire('a', '10s');
  expect(service.held()).toEqual([]);
  await lock.release();
});
