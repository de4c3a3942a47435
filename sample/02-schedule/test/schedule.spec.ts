import type { Server } from 'node:http';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type INestApplication, Logger } from '@nestjs/common';
import type { RedlockModuleOptions } from 'nestjs-redlock';
import { memoryMasters } from 'nestjs-redlock/testing';
import request from 'supertest';
import { readConfig } from '../src/config.js';
import type { Stats } from '../src/latency/latency.controller.js';
import { LatencyProbe } from '../src/latency/latency.probe.js';
import { ReportJob } from '../src/report/report.job.js';
import { start } from '../src/start.js';

let store: string;
const apps: INestApplication<Server>[] = [];

beforeAll(() => {
  Logger.overrideLogger(false);
});

beforeEach(async () => {
  store = await mkdtemp(join(tmpdir(), 'redlock-sample-'));
});

afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
  await rm(store, { recursive: true, force: true });
});

/** Starts three instances of the application that share the store and the masters. */
async function startThree(
  options: Partial<RedlockModuleOptions> = {},
  timers = false,
): Promise<INestApplication<Server>[]> {
  const locks = { masters: memoryMasters(3), ...options };
  const started = ['one', 'two', 'three'].map(async (instance) => start({ instance, port: 0, store, timers, locks }));
  apps.push(...(await Promise.all(started)));
  return apps;
}

/** Seconds for which a report was made, one per run. */
async function reports(): Promise<number[]> {
  const log = await readFile(join(store, 'reports.log'), 'utf8').catch(() => '');
  return log.split('\n').filter(Boolean).map(Number.parseFloat);
}

async function untilReports(count: number): Promise<number[]> {
  for (;;) {
    const seconds = await reports();
    if (seconds.length >= count) return seconds;
    await sleep(50);
  }
}

describe('The report', () => {
  const runOn = (app: INestApplication, second: number): Promise<void> => app.get(ReportJob).report(second);

  it('runs once per tick when all instances want to run it at once', async () => {
    const started = await startThree();
    for (const second of [1, 2, 3]) await Promise.all(started.map((app) => runOn(app, second)));
    await expect(reports()).resolves.toEqual([1, 2, 3]);
  });

  it('runs on every instance without the lock', async () => {
    const started = await startThree({ enabled: false });
    await Promise.all(started.map((app) => runOn(app, 1)));
    await expect(reports()).resolves.toEqual([1, 1, 1]);
  });

  it('does not run again on an instance with a late timer after the first run is over', async () => {
    const [punctual, late] = await startThree();
    await runOn(punctual!, 1);
    await runOn(late!, 1);
    await expect(reports()).resolves.toEqual([1]);
  });

  it('runs the next tick at once although the previous one is still locked', async () => {
    const [app] = await startThree();
    await runOn(app!, 1);
    await runOn(app!, 2);
    await expect(reports()).resolves.toEqual([1, 2]);
  });

  it('runs while a minority of the masters is down or hangs', async () => {
    const masters = memoryMasters(5);
    const started = await startThree({ masters });
    masters[0]!.takeDown();
    masters[1]!.pause();
    await Promise.all(started.map((app) => runOn(app, 1)));
    await expect(reports()).resolves.toEqual([1]);
  });

  it('runs at most once per second from the timers of all instances', async () => {
    await startThree({}, true);
    const seconds = await untilReports(3);
    expect(new Set(seconds).size).toBe(seconds.length);
  });
});

describe('The stock', () => {
  async function sellThirty(started: INestApplication<Server>[]): Promise<number> {
    const servers = started.map((app) => app.getHttpServer());
    await request(servers[0]!).put('/stock/lamp').send({ left: 10 }).expect(200);
    const sales = Array.from({ length: 30 }, async (_, i) => request(servers[i % 3]!).post('/stock/lamp/sales'));
    const statuses = (await Promise.all(sales)).map(({ status }) => status);
    expect(statuses.filter((status) => status !== 201 && status !== 409)).toEqual([]);
    return statuses.filter((status) => status === 201).length;
  }

  it('sells every item once', async () => {
    await expect(sellThirty(await startThree())).resolves.toBe(10);
    await request(apps[1]!.getHttpServer()).get('/stock/lamp').expect(200, { item: 'lamp', left: 0 });
  });

  it('sells too much without the lock', async () => {
    await expect(sellThirty(await startThree({ enabled: false }))).resolves.toBeGreaterThan(10);
  });
});

describe('The stats', () => {
  it('show how long each lock took, and which ones failed', async () => {
    const masters = memoryMasters(3);
    const [app] = await startThree({ masters, wait: '100ms' });
    const probe = app!.get(LatencyProbe);
    await probe.measure();
    masters[0]!.takeDown();
    masters[1]!.takeDown();
    await probe.measure();

    const { body } = await request(app!.getHttpServer()).get('/stats').expect(200);
    const [fine, failed] = (body as Stats).acquisitions;
    expect(fine).toEqual({ at: expect.any(Number), took: expect.any(Number) });
    expect(failed?.error).toContain('QuorumUnavailableError');
  });
});

describe('The configuration', () => {
  it('names the missing variables', () => {
    expect(() => readConfig({})).toThrow('REDIS_URLS is not set');
    expect(() => readConfig({ REDIS_URLS: 'memory' })).toThrow('STORE is not set');
  });

  it('accepts a list of masters', () => {
    const env = { REDIS_URLS: 'redis://a, redis://b', STORE: 'folder', INSTANCE: 'x', PORT: '1', LOCKS: 'off' };
    expect(readConfig(env)).toEqual({
      instance: 'x',
      port: 1,
      store: 'folder',
      timers: true,
      locks: { masters: ['redis://a', 'redis://b'], enabled: false, ttl: '4s', maxTtl: '4s' },
    });
  });
});
