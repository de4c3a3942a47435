import { afterEach, expect, it, jest } from '@jest/globals';
import { ManualClock, memoryLockService, memoryMasters } from 'nestjs-redlock/testing';

afterEach(() => {
  jest.useRealTimers();
});

it('A test with fake timers can lock on masters in memory, and advance the clock of the locks', async () => {
  jest.useFakeTimers();
  const clock = new ManualClock();
  const masters = memoryMasters(3, clock);
  const [one, other] = [memoryLockService({ masters, clock }), memoryLockService({ masters, clock })];

  const lock = await one.acquire('a', { ttl: '10s', extend: true });
  const waiting = other.acquire('a', { ttl: '10s', wait: '1m' });
  await clock.advance(30_000);
  expect(lock.isHeld).toBe(true);
  await lock.release();
  await clock.settle();
  await expect(waiting).resolves.toMatchObject({ isHeld: true });
  expect(jest.getTimerCount()).toBe(0);
});

it('Locks without a clock of their own follow fake timers: they are extended, waited for, and lost', async () => {
  jest.useFakeTimers();
  const masters = memoryMasters(3);
  const [one, other] = [memoryLockService({ masters }), memoryLockService({ masters })];

  const lock = await one.acquire('a', { ttl: '10s', extend: true });
  const waiting = other.acquire('a', { ttl: '10s', wait: '1m', extend: false });
  await jest.advanceTimersByTimeAsync(30_000);
  expect(lock.isHeld).toBe(true);
  await lock.release();
  await jest.advanceTimersByTimeAsync(100);
  const next = await waiting;
  expect(next.isHeld).toBe(true);
  await jest.advanceTimersByTimeAsync(10_000);
  expect(next.loss).toMatchObject({ cause: 'expired' });
});
