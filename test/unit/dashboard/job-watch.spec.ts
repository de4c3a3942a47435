import { describe, expect, it } from '@jest/globals';
import type { ModuleRef } from '@nestjs/core';
import type { JobOverview } from '../../../lib/core/jobs/job-report.interface.js';
import { JobWatch } from '../../../lib/dashboard/job-watch.js';

const NOON = Date.UTC(2026, 10, 22, 12);

function overviewOf(more: Partial<JobOverview> = {}): JobOverview {
  return {
    ...{ name: 'report', service: undefined, schedule: '0 12 * * *', timeZone: 'Europe/Berlin' },
    ...{
      next: new Date(NOON),
      current: undefined,
      runs: [],
      isSettled: true,
      lastSkip: undefined,
      lost: undefined,
      ...more,
    },
  };
}

function watchOf(...overviews: JobOverview[]) {
  let count = 0;
  const watch = new JobWatch({ overview: () => Promise.resolve((count++, overviews)) });
  return { watch, asked: () => count };
}

describe('The jobs of the dashboard', () => {
  it('are absent without the module of jobs', async () => {
    const modules = {
      get: () => {
        throw new Error('Nest could not find it');
      },
    } as unknown as ModuleRef;
    await expect(JobWatch.find(modules).jobs()).resolves.toEqual([]);
  });

  it('are read at most once in two seconds, however many pages are open', async () => {
    const { watch, asked } = watchOf(overviewOf());
    await Promise.all([watch.jobs(0), watch.jobs(10), watch.jobs(1_999)]);
    expect(asked()).toBe(1);
    await watch.jobs(2_000);
    expect(asked()).toBe(2);
  });

  it('have their last five runs, with times in milliseconds', async () => {
    const run = {
      ...{ scheduledFor: new Date(NOON), startedAt: new Date(NOON + 5), endedAt: new Date(NOON + 25) },
      ...({ instance: 'web-1:1', attempt: 2, outcome: 'failed', error: 'no paper' } as const),
    };
    const { startedAt, ...current } = { ...run, scheduledFor: new Date(NOON + 60_000), attempt: 1 };
    const { watch } = watchOf(
      overviewOf({
        current: { startedAt, scheduledFor: current.scheduledFor, instance: 'web-2:1', attempt: 1 },
        runs: Array.from({ length: 8 }, () => run),
        lastSkip: { scheduledFor: new Date(NOON), at: new Date(NOON), reason: 'finished' },
      }),
      overviewOf({ name: 'sync', service: 'billing', schedule: 300_000, timeZone: undefined, problem: 'no quorum' }),
    );
    const [report, sync] = await watch.jobs();
    expect(report).toEqual({
      ...{ name: 'report', service: null, schedule: '0 12 * * * (Europe/Berlin)', next: NOON, isSettled: true },
      current: { scheduledFor: NOON + 60_000, outcome: 'started', instance: 'web-2:1', attempt: 1 },
      runs: Array.from({ length: 5 }, () => ({
        ...{ scheduledFor: NOON, outcome: 'failed', instance: 'web-1:1', attempt: 2, taken: 20, error: 'no paper' },
      })),
      lastSkip: { scheduledFor: NOON, reason: 'another instance has run it' },
    });
    expect(sync).toMatchObject({ name: 'sync', service: 'billing', schedule: '5.0 min', problem: 'no quorum' });
  });
});
