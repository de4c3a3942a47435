import 'reflect-metadata';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { CronExpression, ScheduleModule } from '@nestjs/schedule';
import type { TestingModule } from '@nestjs/testing';
import { RedlockModule } from 'nestjs-redlock';
import { openTelemetry } from 'nestjs-redlock/opentelemetry';
import { LockedCron, RedlockScheduleModule } from 'nestjs-redlock/schedule';
import { ManualClock, memoryMasters } from 'nestjs-redlock/testing';
import { Telemetry } from '../support/telemetry.js';
import { boot, closeAll, logs } from './support/applications.js';

const START = Date.UTC(2026, 2, 29, 0, 0, 30);
const MINUTE = 60_000;
const TICK = START + MINUTE / 2;

@Injectable()
class Reports {
  @LockedCron(CronExpression.EVERY_MINUTE, { name: 'report' })
  async report(): Promise<void> {
    await Promise.resolve();
  }
}

/** Instances that share their masters and their clock, each with metrics of its own. */
class Cluster {
  readonly clock = new ManualClock(START);
  private readonly masters = memoryMasters(3, this.clock);

  async start(telemetry: Telemetry): Promise<TestingModule> {
    const broken = { jobs: { started: () => Promise.reject(new Error('no room')) } };
    const app = await boot({
      imports: [
        RedlockModule.forRoot({
          ...{ masters: this.masters, clock: this.clock, restartGuard: false },
          observers: [broken, openTelemetry({ meterProvider: telemetry.meterProvider })],
        }),
        ...[ScheduleModule.forRoot(), RedlockScheduleModule],
      ],
      providers: [Reports],
    });
    await this.clock.settle();
    return app;
  }
}

const sumOf = async (telemetry: Telemetry, name: string): Promise<number> =>
  (await telemetry.points(name)).reduce((sum, { value }) => sum + value, 0);

afterEach(closeAll);

describe('The metrics of the jobs of several instances', () => {
  it('show one run, a skip on the other instance, and the same last success on all, also after a restart', async () => {
    const cluster = new Cluster();
    const [a, b, c] = [new Telemetry(), new Telemetry(), new Telemetry()];
    const first = await cluster.start(a);
    await cluster.start(b);
    await cluster.clock.advance(MINUTE);
    expect(await sumOf(a, 'redlock.job.runs')).toBe(1 - (await sumOf(b, 'redlock.job.runs')));
    expect(await sumOf(a, 'redlock.job.skips')).toBe(1 - (await sumOf(b, 'redlock.job.skips')));
    await cluster.start(c);
    for (const telemetry of [a, b, c]) {
      const [point, ...others] = await telemetry.points('redlock.job.last_success');
      expect(others).toEqual([]);
      expect(point?.attributes).toEqual({ 'redlock.service': 'default', 'redlock.job': 'report' });
      expect(point?.value).toBeGreaterThanOrEqual(TICK / 1_000);
      expect(point?.value).toBeLessThan(TICK / 1_000 + 1);
    }
    // An observer that fails is logged and disturbs no job.
    expect(logs.filter((line) => line.startsWith('error'))).toEqual([
      'error an observer of locks threw: Error: no room',
    ]);
    await first.close();
  });
});
