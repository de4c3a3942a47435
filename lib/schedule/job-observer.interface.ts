import type { JobRunReport, JobSkip } from './job-run.interface.js';

/** Receives what happens to the jobs of this instance. Called synchronously; must not throw. */
export interface JobObserver {
  /** An attempt begins here. */
  started?(job: string, run: Pick<JobRunReport, 'scheduledFor' | 'startedAt' | 'attempt'>): void;
  /** An attempt has ended here, and its end is recorded. */
  ended?(job: string, run: JobRunReport, error?: unknown): void;
  /** An attempt has ended here without a record of its end, so that the tick is run again. */
  unfinished?(job: string, run: Pick<JobRunReport, 'scheduledFor' | 'attempt'>, cause: unknown): void;
  /** A tick does not run here. */
  skipped?(job: string, skip: JobSkip): void;
  /** The tick or its record could not be handled now, for example without a quorum. It is tried again. */
  delayed?(job: string, cause: unknown): void;
}
