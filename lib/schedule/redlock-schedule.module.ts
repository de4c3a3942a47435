import { Global, Inject, Module, type OnModuleInit } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { calledMethods } from '../internal.js';
import { JobHistory } from './job-history.js';
import { Jobs } from './jobs.js';

/**
 * Runs the methods under `@LockedCron` and `@LockedInterval`, and provides the {@link JobHistory}.
 *
 * ```ts
 * imports: [RedlockModule.forRoot([...]), ScheduleModule.forRoot(), RedlockScheduleModule]
 * ```
 *
 * Jobs tick from the end of the boot on. At the shutdown, their timers end and running jobs are asked to end before other hooks
 * run; `RedlockModule` waits for them, for at most its `drainTimeout`.
 *
 * `ScheduleModule.forRoot({ cronJobs: false })` and `{ intervals: false }` turn these jobs off on an instance, too.
 */
@Global()
@Module({
  imports: [DiscoveryModule, calledMethods.startedLast(Jobs)],
  providers: [Jobs, JobHistory, { provide: calledMethods.CALLED_METHODS.jobs.token, useExisting: JobHistory }],
  exports: [Jobs, JobHistory, calledMethods.CALLED_METHODS.jobs.token],
})
export class RedlockScheduleModule implements OnModuleInit {
  /** @internal */
  constructor(@Inject(Jobs) private readonly jobs: Jobs) {}

  /** Finds the jobs and checks them. */
  onModuleInit(): void {
    this.jobs.find();
  }
}
