import type { Clock, JobObserver, JobRunReport, Lock } from '../index.js';
import type { jobRecords } from '../internal.js';
import type { JobSchedule } from './job-policy.js';

export interface HeldJob {
  readonly lock: Lock;
  run<T>(work: () => T): T;
  // Never rejects.
  end(): Promise<void>;
}

/** The application is shutting down: the reason of `JobRun.signal`. Another instance runs the tick again. */
export class JobHandedOnError extends Error {
  /** A stable code for programs. */
  readonly code = 'JOB_HANDED_ON';

  constructor() {
    super('the application is shutting down: a job that ends with an error now is run again by another instance');
    this.name = JobHandedOnError.name;
  }
}

export interface JobContext {
  // The decorator, the class and the method, for messages.
  readonly where: string;
  readonly call: (run: JobRun) => unknown;
  readonly locks: {
    // Durations are in milliseconds.
    hold(
      resources: readonly string[],
      options: { readonly ttl: number; readonly maxHold: number; readonly wait: number; readonly signal: AbortSignal },
    ): Promise<HeldJob>;
  };
  readonly clock: Clock;
  readonly observer: JobObserver;
  readonly instance: string;
  readonly keyPrefix: string;
  // Aborts at the shutdown of the application.
  readonly stopping: AbortSignal;
}

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

export function reportOf(run: jobRecords.RecordedRun): JobRunReport {
  const { scheduledFor, startedAt, endedAt, instance, attempt, outcome, error } = run;
  return {
    scheduledFor: new Date(scheduledFor),
    startedAt: startedAt === undefined ? undefined : new Date(startedAt),
    endedAt: endedAt === undefined ? undefined : new Date(endedAt),
    instance,
    attempt,
    outcome,
    error,
  };
}

const DAY = 86_400_000;
// In milliseconds.
const SHORTEST_LIFE = 30 * DAY;

// Until after the next tick but one. Masters do not delete values at the same moment: two days more.
export async function storeRecord(lock: Lock, record: jobRecords.JobRecord, schedule: JobSchedule): Promise<void> {
  const twoPeriods = 2 * (schedule.next(record.tick) - record.tick);
  await lock.state.store('the record of the job', record, {
    expireAfter: Math.max(SHORTEST_LIFE, twoPeriods + 2 * DAY),
  });
}
