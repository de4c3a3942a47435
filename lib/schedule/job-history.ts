import { Inject, Injectable } from '@nestjs/common';
import { type JobObserver, type JobReport, type JobRunReport, RedlockConfigError } from '../index.js';
import { jobRecords } from '../internal.js';
import { reportOf } from './job-locks.js';
import { Jobs, type ScheduledJob } from './jobs.js';

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
   * Like {@link list}, but a job whose record cannot be read now has the reason, and no runs.
   * @internal
   */
  overview(): Promise<readonly (JobReport & { readonly problem?: string })[]> {
    return Promise.all(
      this.jobs.all.map(async (scheduled) => {
        try {
          return await reportOn(scheduled);
        } catch (error) {
          const problem = error instanceof Error ? error.message : String(error);
          return { ...declarationOf(scheduled), ...recorded(undefined), isSettled: false, problem };
        }
      }),
    );
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
      ({ job, declaration }) =>
        job.settings.name === name && (service === undefined || declaration.options.service === service),
    );
    if (!scheduled) {
      const names = this.jobs.all.map(({ job }) => job.settings.name).join(', ') || 'none';
      throw new RedlockConfigError('name', name, `must be the name of a job of this application (${names})`);
    }
    const run = jobRecords.lastFinished((await recordOf(scheduled)).record);
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

async function recordOf({
  job,
  locks,
}: ScheduledJob): Promise<{ record: jobRecords.JobRecord | undefined; isSettled: boolean }> {
  const { value, settled } = await locks.readState(job.settings.resource);
  return { record: jobRecords.readJobRecord(value), isSettled: settled };
}

async function reportOn(scheduled: ScheduledJob): Promise<JobReport> {
  const { record, isSettled } = await recordOf(scheduled);
  return { ...declarationOf(scheduled), ...recorded(record), isSettled };
}

// What this instance knows without the masters.
function declarationOf({
  declaration,
  locks,
  job,
}: ScheduledJob): Pick<JobReport, 'name' | 'service' | 'schedule' | 'timeZone' | 'next' | 'lastSkip' | 'lost'> {
  return {
    name: job.settings.name,
    service: declaration.options.service,
    schedule: declaration.schedule,
    timeZone: declaration.kind === 'cron' ? declaration.options.timeZone : undefined,
    next: new Date(job.settings.schedule.next(locks.environment.clock.read().wall)),
    lastSkip: job.lastSkip,
    lost: job.lost,
  };
}

function recorded(record: jobRecords.JobRecord | undefined): Pick<JobReport, 'current' | 'runs'> {
  return {
    current: record?.state === 'started' ? currentOf(record) : undefined,
    runs: record?.runs.map(reportOf) ?? [],
  };
}

function currentOf({ tick, at, holder, attempt }: jobRecords.JobRecord): NonNullable<JobReport['current']> {
  return { scheduledFor: new Date(tick), startedAt: new Date(at), instance: holder, attempt };
}
