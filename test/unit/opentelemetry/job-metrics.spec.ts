import { describe, expect, it } from '@jest/globals';
import type { JobObserver, JobRunReport } from '../../../lib/core/jobs/job-observer.interface.js';
import type { RedlockStatus } from '../../../lib/core/health/status.js';
import { summarize } from '../../../lib/core/health/status.js';
import { openTelemetry } from '../../../lib/opentelemetry/index.js';
import { Telemetry } from '../../support/telemetry.js';

const NOON = Date.UTC(2026, 10, 22, 12);
const STATUS: RedlockStatus = summarize('web:1', [{ master: 'm1', state: 'voting' }]);

function run(more: Partial<JobRunReport> = {}): JobRunReport {
  return {
    ...{ scheduledFor: new Date(NOON), startedAt: new Date(NOON + 10), endedAt: new Date(NOON + 2_510) },
    ...{ instance: 'web-1:1', attempt: 1, outcome: 'ok', error: undefined, ...more },
  };
}

function observe() {
  const telemetry = new Telemetry();
  const { meterProvider } = telemetry;
  const observer = openTelemetry({ meterProvider }).started?.({ name: 'billing', status: () => STATUS });
  const jobs = observer?.jobs as Required<JobObserver>;
  const valuesOf = async (name: string): Promise<unknown[]> =>
    (await telemetry.points(name)).map(({ attributes, value }) => {
      const { 'redlock.service': service, ...rest } = attributes;
      expect(service).toBe('billing');
      return [...Object.values(rest), value];
    });
  return { telemetry, observer, jobs, valuesOf };
}

describe('The metrics of jobs', () => {
  it('count runs by their outcome, and measure those that have ended', async () => {
    const { telemetry, jobs, valuesOf } = observe();
    jobs.ended('report', run());
    jobs.ended('report', run({ outcome: 'failed' }));
    jobs.unfinished('report', { ...run(), isRunning: false }, new Error('lost'));
    expect(await valuesOf('redlock.job.runs')).toEqual([
      ['report', 'ok', 1],
      ['report', 'failed', 1],
      ['report', 'unfinished', 1],
    ]);
    const durations = await telemetry.points('redlock.job.duration');
    expect(durations.map(({ value, sum }) => [value, sum])).toEqual([
      [1, 2.5],
      [1, 2.5],
    ]);
  });

  it('count skips by their reason', async () => {
    const { jobs, valuesOf } = observe();
    const skip = { scheduledFor: new Date(NOON), at: new Date(NOON) };
    for (const reason of ['finished', 'overlap', 'finished'] as const) jobs.skipped('report', { ...skip, reason });
    expect(await valuesOf('redlock.job.skips')).toEqual([
      ['report', 'finished', 2],
      ['report', 'overlap', 1],
    ]);
  });

  it('report the last success in seconds since the epoch, which never goes back, until the service ends', async () => {
    const { observer, jobs, valuesOf } = observe();
    jobs.succeeded('report', run());
    jobs.succeeded('report', run({ endedAt: new Date(NOON) }));
    jobs.succeeded('sync', run({ endedAt: new Date(NOON) }));
    const values = await valuesOf('redlock.job.last_success');
    expect(values).toEqual([
      ['report', (NOON + 2_510) / 1_000],
      ['sync', NOON / 1_000],
    ]);
    observer?.stopped?.();
    jobs.succeeded('report', run({ endedAt: new Date(NOON + 90_000) }));
    // The SDK repeats the last values of a gauge that is not observed any more.
    expect(await valuesOf('redlock.job.last_success')).toEqual(values);
  });

  it('name at most a hundred jobs, and each with at most 64 characters', async () => {
    const { jobs, valuesOf } = observe();
    for (let i = 0; i < 150; i++) jobs.ended(`job-${i}-${'x'.repeat(100)}`, run());
    const names = (await valuesOf('redlock.job.runs')).map((values) => (values as string[])[0]!);
    expect(names).toHaveLength(101);
    expect(names).toContain('other');
    expect(Math.max(...names.map(({ length }) => length))).toBe(64);
  });
});
