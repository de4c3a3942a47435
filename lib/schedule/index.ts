/**
 * Scheduled jobs whose ticks run once, on one instance, with a history: on `@nestjs/schedule`, which is an optional peer
 * of this package.
 *
 * @packageDocumentation
 */
// First, so that Node names it where it is not installed, and not a package of its own.
import '@nestjs/schedule';
export type { JobOutcome, JobSkipReason } from '../index.js';
export {
  type JobDecorator,
  type JobMethod,
  LockedCron,
  type LockedCronOptions,
  LockedInterval,
  type LockedJobOptions,
} from './locked-job.decorators.js';
export { JobHandedOnError, type JobRun } from './job-locks.js';
export type { JobConflict, JobObserver, JobReport, JobRunReport, JobSkip, UnfinishedRun } from '../index.js';
export { JobHistory } from './job-history.js';
export { RedlockScheduleModule } from './redlock-schedule.module.js';
