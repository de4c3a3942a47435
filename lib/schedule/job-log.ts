import type { LoggerService } from '@nestjs/common';
import { isLockError } from '../core/errors.js';
import type { JobSkipReason } from '../core/jobs/job-policy.js';
import type { JobObserver } from '../core/jobs/job-observer.interface.js';

const REASONS: Readonly<Record<JobSkipReason, string>> = {
  finished: 'another instance has run it',
  overlap: 'an earlier tick still ran when it came due',
  superseded: 'a later tick took its place',
  late: 'this instance noticed it too late',
  abandoned: 'it was started and not ended, and `recover` is false',
  unknown: 'the masters have lost its record, so that it may have run',
  baseline: 'the job had no record yet, and it was due earlier',
};

/** Writes the events of jobs to the log of the application. */
export function logJobsTo(logger: LoggerService): JobObserver {
  /** What was reported last for each job: attempts are repeated within a second. */
  const delays = new Map<string, string>();
  return {
    started: (job, { scheduledFor, attempt }) => {
      delays.delete(job);
      const again = attempt === 1 ? '' : `, attempt ${attempt}: no end of the earlier one was recorded`;
      const line = `job ${job} of ${scheduledFor.toISOString()} starts${again}`;
      if (attempt === 1) logger.debug?.(line);
      else logger.warn(line);
    },
    ended: (job, { scheduledFor, outcome }, error) => {
      const line = `job ${job} of ${scheduledFor.toISOString()}`;
      if (outcome === 'failed') logger.error(`${line} has failed: ${describe(error)}`, stackOf(error));
      else logger.debug?.(`${line} has ended`);
    },
    unfinished: (job, { scheduledFor }, cause) =>
      void logger.warn(
        `job ${job} of ${scheduledFor.toISOString()} has ended here without a record, so that it runs again unless ` +
          `\`recover\` is false: ${describe(cause)}`,
      ),
    skipped: (job, { scheduledFor, reason }) =>
      void logger.debug?.(`job ${job} of ${scheduledFor.toISOString()} does not run here: ${REASONS[reason]}`),
    delayed: (job, cause) => {
      const reason = describe(cause);
      if (delays.get(job) === reason) return;
      delays.set(job, reason);
      const line = `job ${job} cannot be decided on now: ${reason}`;
      if (isLockError(cause)) logger.warn(line);
      else logger.error(line, stackOf(cause));
    },
  };
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function stackOf(error: unknown): string | undefined {
  return error instanceof Error ? error.stack : undefined;
}
