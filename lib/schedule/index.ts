/**
 * Scheduled jobs whose ticks run once, on one instance, with a history: on `@nestjs/schedule`, which is an optional peer
 * of this package.
 *
 * @packageDocumentation
 */
export type { JobSkipReason } from '../core/jobs/job-policy.js';
export type { JobOutcome } from '../core/jobs/job-record.js';
export type { JobDecorator, JobMethod } from './job-declaration.js';
export { JobHandedOnError } from './job-handed-on.error.js';
export type { JobReport } from '../core/jobs/job-report.interface.js';
export { JobHistory } from './job-history.js';
export type { JobObserver, JobRunReport, JobSkip, UnfinishedRun } from '../core/jobs/job-observer.interface.js';
export type { JobRun } from './job-run.interface.js';
export { LockedCron } from './locked-cron.decorator.js';
export { LockedInterval } from './locked-interval.decorator.js';
export type { LockedCronOptions, LockedJobOptions } from './locked-job.options.js';
export { RedlockScheduleModule } from './redlock-schedule.module.js';
