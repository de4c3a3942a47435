import type { JobOutcome } from '../core/jobs/job-record.js';
import type { JobSkipReason } from '../core/jobs/job-policy.js';
import type { Lock } from '../core/lock.js';

/** One attempt at one tick of a job. The decorated method receives it. */
export interface JobRun {
  /** Name of the job. */
  readonly job: string;
  /** The nominal time of the tick, which is the same on all instances. */
  readonly scheduledFor: Date;
  /**
   * `1`, and more if earlier attempts at this tick did not end: their instance crashed, lost the lock or was shut down.
   * An upper bound of the number of starts.
   */
  readonly attempt: number;
  /** The last run of this job whose end was recorded, on any instance; `undefined` if none is known. */
  readonly previous: JobRunReport | undefined;
  /**
   * Aborts when the lock of the job is lost, with a `LockLostError`, and at the shutdown of the application, with a
   * {@link JobHandedOnError}. Pass it to all work that can end early. A method that then ends with an error is run again
   * by another instance at once; one that returns has run.
   */
  readonly signal: AbortSignal;
  /** The lock of the job. Its `state` belongs to the schedule. */
  readonly lock: Lock;
}

/** One attempt in the history of a job. Times are by the clocks of the masters. */
export interface JobRunReport {
  /** The nominal time of the tick. */
  readonly scheduledFor: Date;
  /** `undefined` if the tick did not start. */
  readonly startedAt: Date | undefined;
  /** `undefined` if no end was recorded. */
  readonly endedAt: Date | undefined;
  /** The `instance` of the module that ran it, or that found that it cannot run. */
  readonly instance: string;
  /** Number of the attempt at this tick; `0` if it did not start. */
  readonly attempt: number;
  readonly outcome: JobOutcome;
  /** The beginning of the message of the error, if the outcome is `failed`. */
  readonly error: string | undefined;
}

/** A tick that this instance did not run. */
export interface JobSkip {
  /** The nominal time of the tick. */
  readonly scheduledFor: Date;
  /** When the instance decided, by its own clock. */
  readonly at: Date;
  readonly reason: JobSkipReason;
}
