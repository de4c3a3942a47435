import type { JobOutcome, JobSkipReason } from './job-record.js';

/** One attempt in the history of a job. Times are by the clock of the instance. */
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
  /** How it went. */
  readonly outcome: JobOutcome;
  /** The beginning of the message of the error, if the outcome is `failed`. */
  readonly error: string | undefined;
}

/** An attempt of this instance that has lost its lock or was handed on. */
export interface UnfinishedRun extends Pick<JobRunReport, 'scheduledFor' | 'attempt'> {
  /** Whether the method has not returned yet. Until it does, the instance runs no other tick of the job. */
  readonly isRunning: boolean;
}

/** A tick that this instance did not run. */
export interface JobSkip {
  /** The nominal time of the tick. */
  readonly scheduledFor: Date;
  /** When the instance decided, by its own clock. */
  readonly at: Date;
  /** Why it did not run. */
  readonly reason: JobSkipReason;
}

/** The record of a job is of another method or schedule: of another application, or of another version of this one. */
export interface JobConflict {
  /** The decorator, class, method and schedule here. */
  readonly here: string;
  /** Those for which the record was written. */
  readonly there: string;
  /** The instance that wrote it. */
  readonly instance: string;
  /** The key prefix that both use. */
  readonly keyPrefix: string;
}

/**
 * Receives what happens to the jobs of this instance. Called synchronously. What it throws is logged, and affects neither
 * the jobs nor other observers.
 */
export interface JobObserver {
  /** An attempt begins here. */
  started?(job: string, run: Pick<JobRunReport, 'scheduledFor' | 'startedAt' | 'attempt'>): void;
  /** An attempt has ended here, and its end is recorded. */
  ended?(job: string, run: JobRunReport, error?: unknown): void;
  /**
   * An attempt has no record of its end, so that the tick is run again. Called once for each attempt: as soon as it loses
   * its lock, or when it has ended.
   */
  unfinished?(job: string, run: UnfinishedRun, cause: unknown): void;
  /**
   * The last run of a job that has ended without an error, on any instance, as the masters have it. Called at boot, and
   * each time this instance has looked at a tick.
   */
  succeeded?(job: string, last: JobRunReport): void;
  /** A tick does not run here. */
  skipped?(job: string, skip: JobSkip): void;
  /** Two methods or schedules have the name of one job, so that each takes the ticks of the other. Once for each other one. */
  conflicting?(job: string, conflict: JobConflict): void;
  /** The tick or its record could not be handled now, for example without a quorum. It is tried again. `cause`: an error, or a text. */
  delayed?(job: string, cause: unknown): void;
}

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
