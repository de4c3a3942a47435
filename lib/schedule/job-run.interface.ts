import type { JobRunReport } from '../core/jobs/job-observer.interface.js';
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
