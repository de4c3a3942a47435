/**
 * Scheduled jobs whose ticks run once, on one instance, with a history: on `@nestjs/schedule`, which is an optional peer
 * of this package.
 *
 * @packageDocumentation
 */
export type { JobSkipReason } from '../core/jobs/job-policy.js';
export type { JobOutcome } from '../core/jobs/job-record.js';
export type { JobDecorator, JobMethod } from './locked-job.decorators.js';
export { JobHandedOnError } from './job-locks.js';
export type { JobReport } from '../core/jobs/job-observer.js';
export { JobHistory } from './job-history.js';
export type { JobObserver, JobRunReport, JobSkip, UnfinishedRun } from '../core/jobs/job-observer.js';
export type { JobRun } from './job-locks.js';
export { LockedCron } from './locked-job.decorators.js';
export { LockedInterval } from './locked-job.decorators.js';
export type { LockedCronOptions, LockedJobOptions } from './locked-job.decorators.js';
export { RedlockScheduleModule } from './redlock-schedule.module.js';
