import { afterEach, describe, expect, it } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockService, type RedlockModuleOptions } from 'nestjs-redlock';
import { ManualClock, memoryMasters } from 'nestjs-redlock/testing';
import { AppModule } from '../src/app.module.js';

const apps: INestApplication[] = [];

afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
});

interface Running {
  readonly app: INestApplication;
  readonly url: string;
}

async function start(locks: RedlockModuleOptions): Promise<Running> {
  const testing = await Test.createTestingModule({ imports: [AppModule.register(locks)] }).compile();
  const app = testing.createNestApplication();
  app.useLogger(false);
  apps.push(app);
  await app.listen(0, '127.0.0.1');
  return { app, url: await app.getUrl() };
}

async function ship(url: string, id: string): Promise<number> {
  const response = await fetch(`${url}/orders/${id}/shipment`, { method: 'POST' });
  await response.arrayBuffer();
  return response.status;
}

/** Reads the metrics like Prometheus: `name{labels}` and the value. */
async function scrape(url: string): Promise<Map<string, number>> {
  const response = await fetch(`${url}/metrics`);
  expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
  const lines = (await response.text()).split('\n').filter((line) => line.startsWith('redlock_'));
  return new Map(
    lines.map((line) => {
      const end = line.lastIndexOf('} ') + 1;
      return [line.slice(0, end), Number(line.slice(end).trim().split(' ')[0])];
    }),
  );
}

/** The values of one metric, by one of its labels. */
function valuesOf(metrics: Map<string, number>, name: string, label: string): Record<string, number> {
  const values = [...metrics].filter(([key]) => key.startsWith(`${name}{`));
  const labelOf = (key: string): string => new RegExp(`[{,]${label}="([^"]*)"`).exec(key)?.[1] ?? 'none';
  return Object.fromEntries<number>(values.map(([key, value]) => [labelOf(key), value]));
}

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

  it('counts lost locks by cause', async () => {
    const clock = new ManualClock();
    const { app, url } = await start({ masters: memoryMasters(3, clock), clock });
    await app.get(LockService).acquire('order:1', '1s');
    await clock.advance(1_000);
    expect(valuesOf(await scrape(url), 'redlock_locks_lost_total', 'redlock_loss_cause')).toEqual({ expired: 1 });
  });

  it('does not grow with the number of orders, and names none of them', async () => {
    const { app, url } = await start({ masters: memoryMasters(1) });
    const locks = app.get(LockService);
    const lockMany = async (from: number, to: number): Promise<string[]> => {
      for (let id = from; id < to; id++) await (await locks.acquire(`order:no-${id}`)).release();
      return [...(await scrape(url)).keys()].sort();
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
