import { afterEach, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { type HeldLock, LockService, WithLock } from 'nestjs-redlock';
import { boot, closeAll } from './support/applications.js';
import { LocksPerTest } from './support/locks.js';

const locks = new LocksPerTest(3);
afterEach(closeAll);

const start = async (): Promise<LockService> =>
  (await boot({ imports: [locks.module({ clock: locks.clock })] })).get(LockService);

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
  const app = await boot({ imports: [locks.module({ clock: locks.clock })], providers: [Orders] });
  const service = app.get(LockService);
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
  const [one, other] = [await start(), await start()];
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
  const attempts = (await elsewhere!).attempts;
  expect(attempts).toBeGreaterThan(1);
});

it('A process without locking holds none', async () => {
  const service = (await boot({ imports: [locks.module({ enabled: false, clock: locks.clock })] })).get(LockService);
  const lock = await service.acquire('a', '10s');
  expect(service.held()).toEqual([]);
  await lock.release();
});
