import type { LoggerService } from '@nestjs/common';
import { isLockError } from '../core/errors.js';
import { SKIP_WORDS } from '../core/jobs/job-policy.js';
import { describeDeviation, type JobClock } from './job-clock.js';
import { JobHandedOnError } from './job-locks.js';
import { messageOf } from './job-execution.js';
import type { JobObserver } from '../core/jobs/job-observer.js';

export function logJobsTo(logger: LoggerService): JobObserver {
  // What was reported last for each job: attempts are repeated within a second.
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
      if (outcome === 'failed') logger.error(`${line} has failed: ${messageOf(error)}`, stackOf(error));
      else logger.debug?.(`${line} has ended`);
    },
    unfinished: (job, { scheduledFor, isRunning }, cause) => {
      const line = `job ${job} of ${scheduledFor.toISOString()}`;
      const consequence = 'so that it runs again unless `recover` is false';
      const standstill = 'this instance runs no tick of the job until the method returns';
      if (cause instanceof JobHandedOnError) logger.log(`${line} is handed on by the shutdown, ${consequence}`);
      else if (isRunning) logger.warn(`${line} has lost its lock, ${consequence}; ${standstill}: ${messageOf(cause)}`);
      else logger.warn(`${line} has ended here without a record, ${consequence}: ${messageOf(cause)}`);
    },
    skipped: (job, { scheduledFor, reason }) =>
      void logger.debug?.(`job ${job} of ${scheduledFor.toISOString()} does not run here: ${SKIP_WORDS[reason]}`),
    delayed: (job, cause) => {
      const reason = messageOf(cause);
      if (delays.get(job) === reason) return;
      delays.set(job, reason);
      const line = `job ${job} cannot be decided on now: ${reason}`;
      if (cause instanceof Error && !isLockError(cause)) logger.error(line, stackOf(cause));
      else logger.warn(line);
    },
  };
}

// Once for each master, and again if its clock was right in between.
export function reportDeviationsTo(logger: LoggerService): (deviations: JobClock['deviations']) => void {
  let reported: readonly string[] = [];
  return (deviations) => {
    for (const deviation of deviations.filter(({ master }) => !reported.includes(master))) {
      try {
        logger.warn(`${describeDeviation(deviation)}, which decide when jobs run: correct it`);
      } catch {
        // Called while a job is decided on, which an error of the logger must not end.
      }
    }
    reported = deviations.map(({ master }) => master);
  };
}

function stackOf(error: unknown): string | undefined {
  return error instanceof Error && typeof error.stack === 'string' ? error.stack : undefined;
}
