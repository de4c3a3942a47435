import type { JobOverview } from '../core/jobs/job-report.interface.js';

/** Reports on the jobs of the application, for parts of this package that must not need `@nestjs/schedule`. */
export interface JobReports {
  /** All jobs, in the order of their declarations. Asks the masters once for each; never rejects. */
  overview(): Promise<readonly JobOverview[]>;
}

/** Injection token of {@link JobReports}. The same for both builds of this package. */
export const JOB_REPORTS = Symbol.for('nestjs-redlock:job-reports');

/** Injection token of the jobs of an application. Nest shows this description if it cannot find them. */
export const JOBS = Symbol.for(
  'the jobs of nestjs-redlock/schedule: import RedlockScheduleModule beside RedlockModule and ScheduleModule',
);

/** Metadata key: the jobs that a class declares. The same for both builds of this package. */
export const JOB_DECLARATIONS = Symbol.for('nestjs-redlock:jobs');
