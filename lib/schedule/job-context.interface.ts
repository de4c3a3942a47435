import type { JobClock } from './job-clock.js';
import type { JobLocks } from './job-locks.interface.js';
import type { JobObserver } from '../core/jobs/job-observer.interface.js';

/** What a job needs of the application. */
export interface JobContext {
  readonly locks: JobLocks;
  readonly clock: JobClock;
  readonly observer: JobObserver;
  /** Name of this instance. */
  readonly instance: string;
  /** Aborts at the shutdown of the application. */
  readonly stopping: AbortSignal;
}
