import type { JobRunReport, JobSkip } from './job-observer.interface.js';

/** What is known about a job. */
export interface JobReport {
  /** Its name in the decorator. */
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
  /**
   * The attempt of this instance that has lost its lock and whose method has not returned; `undefined` if there is none.
   * Until it returns, this instance runs no tick of the job.
   */
  readonly lost: Pick<JobRunReport, 'scheduledFor' | 'attempt'> | undefined;
  /** The last tick that this instance did not run, since it was started. */
  readonly lastSkip: JobSkip | undefined;
}

/** A report, or why its record cannot be read now. */
export interface JobOverview extends JobReport {
  readonly problem?: string;
}
