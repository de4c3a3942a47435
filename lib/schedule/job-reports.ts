import type { RecordedRun } from '../core/jobs/job-record.js';
import type { JobRunReport } from '../core/jobs/job-observer.interface.js';

/** An attempt in the history, for users. */
export function reportOf(run: RecordedRun): JobRunReport {
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
