import type { ModuleRef } from '@nestjs/core';
import { duration } from '../core/display.js';
import type { JobRunReport } from '../core/jobs/job-observer.interface.js';
import type { JobOverview } from '../core/jobs/job-report.interface.js';
import { SKIP_WORDS } from '../core/jobs/skip-words.js';
import { JOB_REPORTS, type JobReports } from '../nest/job.tokens.js';
import type { JobRunView, JobView } from './views.js';

/** Records are read at most once in this many milliseconds, however many pages are open. */
const READ_INTERVAL = 2_000;
/** Number of attempts that are shown of each job. */
const MOST_RUNS = 5;

/** The jobs of the application, if it has any. */
export class JobWatch {
  private seen: { readonly at: number; readonly jobs: Promise<readonly JobView[]> } | undefined;

  constructor(private readonly reports: JobReports | undefined) {}

  /** Finds the jobs by a token, because the dashboard does not need the package on which they run. */
  static find(modules: ModuleRef): JobWatch {
    try {
      return new JobWatch(modules.get<JobReports>(JOB_REPORTS, { strict: false }));
    } catch {
      return new JobWatch(undefined);
    }
  }

  /** The jobs as the masters have them. What was read in the last two seconds is used again. */
  jobs(now = performance.now()): Promise<readonly JobView[]> {
    if (!this.seen || now - this.seen.at >= READ_INTERVAL) this.seen = { at: now, jobs: this.read() };
    return this.seen.jobs;
  }

  private async read(): Promise<readonly JobView[]> {
    const overview = (await this.reports?.overview()) ?? [];
    return overview.map(viewOf);
  }
}

function viewOf(overview: JobOverview): JobView {
  const { name, service, next, current, runs, lastSkip, isSettled, problem } = overview;
  return {
    ...{ name, service: service ?? null, schedule: scheduleOf(overview), next: next.getTime(), isSettled },
    ...(current && { current: currentOf(current) }),
    runs: runs.slice(0, MOST_RUNS).map(runOf),
    ...(lastSkip && {
      lastSkip: { scheduledFor: lastSkip.scheduledFor.getTime(), reason: SKIP_WORDS[lastSkip.reason] },
    }),
    ...(problem !== undefined && { problem }),
  };
}

function currentOf({ scheduledFor, instance, attempt }: NonNullable<JobOverview['current']>): JobRunView {
  return { scheduledFor: scheduledFor.getTime(), outcome: 'started', instance, attempt };
}

function scheduleOf({ schedule, timeZone }: Pick<JobOverview, 'schedule' | 'timeZone'>): string {
  const text = typeof schedule === 'number' ? duration(schedule) : schedule;
  return timeZone === undefined ? text : `${text} (${timeZone})`;
}

function runOf({ scheduledFor, startedAt, endedAt, instance, attempt, outcome, error }: JobRunReport): JobRunView {
  return {
    ...{ scheduledFor: scheduledFor.getTime(), outcome, instance, attempt },
    ...(startedAt && endedAt && { taken: Math.max(0, endedAt.getTime() - startedAt.getTime()) }),
    ...(error !== undefined && { error }),
  };
}
