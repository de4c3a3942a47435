// Exercises the guarantees of a lock, on real masters, with two instances of an application.
import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import { LockLostError, LockNotAcquiredError, LockService } from 'nestjs-redlock';
import { ManualClock, memoryMasters } from 'nestjs-redlock/testing';
import { account, Accounts, depositUnlocked, start } from './application.js';

const DEPOSITS = 10;

export async function exerciseLocks(masters: readonly string[], keyPrefix: string): Promise<void> {
  const apps = [await start({ masters, keyPrefix }), await start({ masters, keyPrefix })] as const;
  try {
    const accounts = [apps[0].get(Accounts), apps[1].get(Accounts)] as const;
    await exclude(...accounts);
    const [one, other] = [apps[0].get(LockService), apps[1].get(LockService)];
    await refuse(one, other);
    await lockRequests(one, await apps[1].getUrl());

    const running = await one.acquire('report');
    equal(await accounts[1].report(), undefined, 'onLocked: skip');
    await running.release();
    equal(await accounts[1].report(), 'written');
  } finally {
    await Promise.all(apps.map((app) => app.close()));
  }
}

async function exclude(one: Accounts, other: Accounts): Promise<void> {
  await Promise.all(Array.from({ length: DEPOSITS }, () => depositUnlocked(1)));
  ok(account.balance < DEPOSITS, 'without a lock updates are lost, or this would show nothing');

  account.balance = 0;
  const deposits = Array.from({ length: DEPOSITS }, (_, i) => (i % 2 === 0 ? one : other).deposit('a', 1));
  await Promise.all(deposits);
  equal(account.balance, DEPOSITS, 'no update is lost');
}

async function refuse(one: LockService, other: LockService): Promise<void> {
  const lock = await one.acquire(['stock', 'prices']);
  const first = await lock.fencingToken();
  equal(await other.tryAcquire('stock'), null);
  await rejects(other.acquire('prices', { ttl: '4s', wait: 0 }), (error) => {
    ok(error instanceof LockNotAcquiredError);
    equal(error.code, 'LOCK_NOT_ACQUIRED');
    deepEqual(error.resources, ['prices']);
    return true;
  });
  await lock.release();
  const next = await other.acquire('stock');
  ok((await next.fencingToken()) > first, 'fencing tokens grow');
  await next.release();
}

async function lockRequests(locks: LockService, url: string): Promise<void> {
  const checkOut = () => fetch(`${url}/carts/checkout`, { method: 'POST' });
  const lock = await locks.acquire('cart');
  equal((await checkOut()).status, 423);
  await lock.release();
  equal(await (await checkOut()).text(), 'checked out');
}

/** Exercises the kit with which users test their own code. */
export async function exerciseTestingKit(): Promise<void> {
  const clock = new ManualClock();
  const masters = memoryMasters(3, clock);
  const app = await start({ masters, clock });
  try {
    const lock = await app.get(LockService).acquire('report', { ttl: '2s', extend: true });
    await clock.advance(4_000);
    ok(lock.isHeld, 'extended');
    for (const master of masters) master.pause();
    await clock.advance(2_000);
    ok(lock.loss instanceof LockLostError);
    equal(lock.loss.cause, 'expired');
    // The clock does not move any more, so a request to a paused master would never time out.
    for (const master of masters) master.resume();
  } finally {
    await app.close();
  }
}
