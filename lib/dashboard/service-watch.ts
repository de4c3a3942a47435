import type { ModuleRef } from '@nestjs/core';
import type { ResourceContention } from '../core/contention/contention.js';
import { duration } from '../core/display.js';
import type { JobOverview, JobRunReport } from '../core/jobs/job-observer.js';
import { SKIP_WORDS } from '../core/jobs/job-policy.js';
import { JOB_REPORTS, type JobReports } from '../nest/lock-service.token.js';
import type { EventLog, JobRunView, JobView } from './views.js';
import type { LoggerService } from '@nestjs/common';
import type { RedlockStatus } from '../core/health/status.js';
import type { OwnLocks } from '../core/operator/inspector.js';
import type { LockService } from '../nest/lock.service.js';
import { SystemClock } from '../runtime/system-clock.js';
import { logTo } from '../nest/log-observer.js';

// In milliseconds: records are read at most once in this time, however many pages are open.
const READ_INTERVAL = 2_000;
const MAX_RUNS = 5;

export class JobWatch {
  private seen: { readonly at: number; readonly jobs: Promise<readonly JobView[]> } | undefined;

  constructor(private readonly reports: JobReports | undefined) {}

  // By a token, because the dashboard does not need the package on which jobs run.
  static find(modules: ModuleRef): JobWatch {
    try {
      return new JobWatch(modules.get<JobReports>(JOB_REPORTS, { strict: false }));
    } catch {
      return new JobWatch(undefined);
    }
  }

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
    runs: runs.slice(0, MAX_RUNS).map(runOf),
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

// In milliseconds: masters are asked at most once in this time, however many pages are open.
const PROBE_INTERVAL = 1_000;
const MAX_LISTED = 100;
const MAX_KINDS = 10;

export class ServiceWatch {
  private probed: { readonly at: number; readonly status: Promise<RedlockStatus> } | undefined;

  // `name` is `null` for the service without a name.
  constructor(
    readonly name: string | null,
    readonly locks: LockService,
    private readonly events: EventLog,
  ) {}

  // By `enabled: false`.
  get isOff(): boolean {
    return !this.locks.excludes;
  }

  begin(): void {
    const { events, name } = this;
    const lines: LoggerService = {
      log: (text: string) => events.add(name, 'good', text),
      warn: (text: string) => events.add(name, 'warning', text),
      error: (text: string) => events.add(name, 'bad', text),
    };
    const observer = {
      ...logTo(lines, new SystemClock()),
      lockLost: (error: Error): void => events.add(name, 'lost', error.message),
      elections: {
        elected: (election: string, term: number): void =>
          events.add(name, 'good', `this instance leads "${election}" in term ${term}`),
        overrun: (election: string, term: number): void =>
          events.add(name, 'bad', `the method of "${election}" goes on without leading since term ${term}`),
      },
    };
    this.locks.observe(observer);
  }

  status(now = performance.now()): Promise<RedlockStatus> {
    if (!this.probed || now - this.probed.at >= PROBE_INTERVAL) {
      this.probed = { at: now, status: this.locks.probe() };
    }
    return this.probed.status;
  }

  // What this process holds and waits for, however it began before the watch.
  get own(): { readonly held: OwnLocks; readonly waiting: OwnLocks } {
    return this.locks.ownLocks(MAX_LISTED);
  }

  get contention(): readonly ResourceContention[] {
    return this.locks.contention().slice(0, MAX_KINDS);
  }
}
