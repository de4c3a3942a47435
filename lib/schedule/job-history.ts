import { Inject, Injectable } from '@nestjs/common';
import { RedlockConfigError } from '../core/errors.js';
import { type JobRecord, lastFinished, readJobRecord } from '../core/jobs/job-record.js';
import { readStateOf } from './job-locks.js';
import { reportOf } from './job-reports.js';
import type { JobObserver, JobRunReport, JobSkip } from '../core/jobs/job-observer.interface.js';
import { Jobs, type ScheduledJob } from './jobs.js';

/** What is known about a job. */
export interface JobReport {
  readonly name: string;
  /** Name of the lock service; `undefined` for the one without a name. */
  readonly service: string | undefined;
  /** The cron expression or the period, as the decorator has it. */
  readonly schedule: string | number;
  /** The time zone that the decorator gives. */
  readonly timeZone: string | undefined;
  /** The nominal time of the next tick. */
  readonly next: Date;
  /** The attempt that is running, or whose instance crashed and that is about to run again. */
  readonly current: Omit<JobRunReport, 'endedAt' | 'outcome' | 'error'> | undefined;
  /** The last attempts, newest first; at most 20, fewer if their errors are long. */
  readonly runs: readonly JobRunReport[];
  /** Whether a majority of the masters agrees on all this. Otherwise a newer record may exist. */
  readonly isSettled: boolean;
  /** The last tick that this instance did not run, since it was started. */
  readonly lastSkip: JobSkip | undefined;
}

/** What the jobs of this application did, on all instances. Inject it into any provider. */
@Injectable()
export class JobHistory {
  /** @internal */
  constructor(@Inject(Jobs) private readonly jobs: Jobs) {}

  /**
   * The jobs that this application declares, in the order in which they were found. Asks the masters once for each.
   *
   * @throws {QuorumUnavailableError} if too few masters answer
   */
  list(): Promise<readonly JobReport[]> {
    return Promise.all(this.jobs.all.map((scheduled) => reportOn(scheduled)));
  }

  /**
   * The last run of a job whose end was recorded, on any instance.
   *
   * @param service name of the lock service of the job; default: the first job of that name
   * @returns `undefined` if none is known
   * @throws {QuorumUnavailableError} if too few masters answer
   * @throws {RedlockConfigError} if the application has no such job
   */
  async last(name: string, service?: string): Promise<JobRunReport | undefined> {
    const scheduled = this.jobs.all.find(
      ({ found: { settings, declaration } }) =>
        settings.name === name && (service === undefined || declaration.options.service === service),
    );
    if (!scheduled) {
      const names = this.jobs.all.map(({ found }) => found.settings.name).join(', ') || 'none';
      throw new RedlockConfigError('name', name, `must be the name of a job of this application (${names})`);
    }
    const run = lastFinished((await recordOf(scheduled)).record);
    return run && reportOf(run);
  }

  /**
   * Adds an observer of the jobs of this instance.
   *
   * @returns a function that removes it
   */
  observe(observer: JobObserver): () => void {
    return this.jobs.observe(observer);
  }
}

async function recordOf({ found }: ScheduledJob): Promise<{ record: JobRecord | undefined; isSettled: boolean }> {
  const { value, settled } = await readStateOf(found.locks, found.settings.resource);
  return { record: readJobRecord(value), isSettled: settled };
}

async function reportOn(scheduled: ScheduledJob): Promise<JobReport> {
  const { found, job } = scheduled;
  const { settings, declaration, locks } = found;
  const { record, isSettled } = await recordOf(scheduled);
  return {
    name: settings.name,
    service: declaration.options.service,
    schedule: declaration.schedule,
    timeZone: declaration.kind === 'cron' ? declaration.options.timeZone : undefined,
    next: new Date(settings.schedule.next(locks.environment.clock.read().wall)),
    current: record?.state === 'started' ? currentOf(record) : undefined,
    runs: record?.runs.map(reportOf) ?? [],
    isSettled,
    lastSkip: job.lastSkip,
  };
}

function currentOf({ tick, at, holder, attempt }: JobRecord): NonNullable<JobReport['current']> {
  return { scheduledFor: new Date(tick), startedAt: new Date(at), instance: holder, attempt };
}
