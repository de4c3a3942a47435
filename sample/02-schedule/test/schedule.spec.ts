import type { Server } from 'node:http';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type INestApplication, Logger } from '@nestjs/common';
import { type JobReport, JobHistory } from 'nestjs-redlock/schedule';
import { ManualClock, memoryMasters } from 'nestjs-redlock/testing';
import request from 'supertest';
import { start } from '../src/start.js';

const NAMES = ['one', 'two', 'three'];
const START = Date.UTC(2026, 0, 1);

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

/** Three instances that share the store and the masters. */
class Cluster {
  private readonly clock = new ManualClock(START);
  private readonly masters = memoryMasters(3, this.clock);

  async start(enabled = true): Promise<void> {
    const starting = NAMES.map(async (instance) => {
      const locks = { masters: this.masters, clock: this.clock, enabled, drainTimeout: 0 };
      return start({ instance, port: 0, store, locks });
    });
    apps.push(...(await Promise.all(starting)));
    await this.advance(0);
  }

  async advance(milliseconds: number): Promise<void> {
    await this.clock.advance(milliseconds);
  }
}

/** Resolves when this many instances have decided on the next tick of the report: they made it or skipped it. */
async function decided(count: number): Promise<string[]> {
  const events: string[] = [];
  const removals: (() => void)[] = [];
  await new Promise<void>((resolve) => {
    const note = (event: string) => (job: string) => {
      if (job === 'report' && events.push(event) === count) resolve();
    };
    for (const app of apps) {
      removals.push(app.get(JobHistory).observe({ ended: note('made'), skipped: note('skipped') }));
    }
  });
  for (const remove of removals) remove();
  return events.sort();
}

/** Seconds after the start for which a report was made, one per run. */
async function reports(): Promise<number[]> {
  const log = await readFile(join(store, 'reports.log'), 'utf8').catch(() => '');
  const seconds = log.split('\n').filter(Boolean).map(Number.parseFloat);
  return seconds.map((second) => second - START / 1_000);
}

describe('The report', () => {
  it('runs once per tick although all instances want to run it', async () => {
    const cluster = new Cluster();
    await cluster.start();
    for (let second = 1; second <= 3; second++) {
      const all = decided(3);
      await cluster.advance(1_000);
      await expect(all).resolves.toEqual(['made', 'skipped', 'skipped']);
    }
    await expect(reports()).resolves.toEqual([1, 2, 3]);
  });

  it('runs on every instance without the lock', async () => {
    const cluster = new Cluster();
    await cluster.start(false);
    const all = decided(3);
    await cluster.advance(1_000);
    await expect(all).resolves.toEqual(['made', 'made', 'made']);
    await expect(reports()).resolves.toEqual([1, 1, 1]);
  });

  it('has a history that every instance shows', async () => {
    const cluster = new Cluster();
    await cluster.start();
    const all = decided(3);
    await cluster.advance(1_000);
    await all;
    for (const app of apps) {
      const { body } = await request(app.getHttpServer()).get('/jobs').expect(200);
      const [report, imports] = body as JobReport[];
      const run = { scheduledFor: new Date(START + 1_000).toISOString(), attempt: 1, outcome: 'ok' };
      expect(report).toMatchObject({ name: 'report', schedule: '* * * * * *', runs: [run], isSettled: true });
      expect(imports).toMatchObject({ name: 'import', schedule: '10s', runs: [] });
    }
  });
});
