import { afterEach, describe, expect, it } from '@jest/globals';
import { LockService } from 'nestjs-redlock';
import { memoryMasters } from 'nestjs-redlock/testing';
import { closeAll, ship, start } from './support/application.js';
import { scrape, valuesOf } from './support/exposition.js';

afterEach(closeAll);

describe('GET /metrics', () => {
  it('counts the locked and the skipped orders', async () => {
    const { app, url } = await start({ masters: memoryMasters(3) });
    await expect(ship(url, '1')).resolves.toBe(201);
    await using _ = await app.get(LockService).acquire('order:2');
    await expect(ship(url, '2')).resolves.toBe(409);
    await expect(ship(url, '3')).resolves.toBe(201);

    const metrics = await scrape(url);
    expect(valuesOf(metrics, 'redlock_acquire_duration_count', 'redlock_outcome')).toEqual({
      granted: 3,
      skipped: 1,
    });
    expect(valuesOf(metrics, 'redlock_hold_duration_count', 'redlock_outcome')).toEqual({ released: 2 });
    expect(valuesOf(metrics, 'redlock_locks_held', 'redlock_resource')).toEqual({ 'order:*': 1 });
    expect(valuesOf(metrics, 'redlock_waiters', 'redlock_resource')).toEqual({ 'order:*': 0 });
    const masters = valuesOf(metrics, 'redlock_master_latency_count', 'redlock_master');
    expect(Object.keys(masters)).toEqual(['memory-1', 'memory-2', 'memory-3']);
  });

  it('does not grow with the number of orders, and names none of them', async () => {
    const { app, url } = await start({ masters: memoryMasters(1) });
    const locks = app.get(LockService);
    const lockMany = async (from: number, to: number): Promise<string[]> => {
      for (let id = from; id < to; id++) await (await locks.acquire(`order:no-${id}`)).release();
      return (await scrape(url)).map(({ name, labels }) => `${name} ${JSON.stringify(labels)}`).sort();
    };
    const few = await lockMany(0, 10);
    expect(few.length).toBeGreaterThan(0);
    await expect(lockMany(10, 300)).resolves.toEqual(few);
    expect(few.join()).not.toContain('no-');
  });
});

describe('GET /health', () => {
  const healthOf = async (url: string): Promise<number> => (await fetch(`${url}/health`)).status;

  it('answers 503 when a majority of the masters is down', async () => {
    const masters = memoryMasters(3);
    const { url } = await start({ masters });
    await expect(healthOf(url)).resolves.toBe(200);
    masters[0]!.takeDown();
    await expect(healthOf(url)).resolves.toBe(200);
    masters[1]!.takeDown();
    await expect(healthOf(url)).resolves.toBe(503);
    masters[0]!.bringUp();
    await expect(healthOf(url)).resolves.toBe(200);
  });
});
