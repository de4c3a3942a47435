import {
  type BeforeApplicationShutdown,
  Global,
  Inject,
  Module,
  type OnApplicationBootstrap,
  type OnModuleInit,
} from '@nestjs/common';
import { DiscoveryModule, DiscoveryService } from '@nestjs/core';
import { closeOnError } from '../nest/declared-methods.js';
import { CALLED_METHODS } from '../nest/lock-service.token.js';
import { JobHistory } from './job-history.js';
import { Jobs } from './jobs.js';

/**
 * Runs the methods under `@LockedCron` and `@LockedInterval`, and provides the {@link JobHistory}.
 *
 * ```ts
 * imports: [RedlockModule.forRoot([...]), ScheduleModule.forRoot(), RedlockScheduleModule]
 * ```
 *
 * `ScheduleModule.forRoot({ cronJobs: false })` and `{ intervals: false }` turn these jobs off on an instance, too.
 */
@Global()
@Module({
  imports: [DiscoveryModule],
  providers: [Jobs, JobHistory, { provide: CALLED_METHODS.jobs.token, useExisting: JobHistory }],
  exports: [JobHistory, CALLED_METHODS.jobs.token],
})
export class RedlockScheduleModule implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown {
  /** @internal */
  constructor(
    @Inject(Jobs) private readonly jobs: Jobs,
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
  ) {}

  /** Finds the jobs and checks them. */
  async onModuleInit(): Promise<void> {
    await closeOnError(this.discovery, () => this.jobs.find());
  }

  /** Lets the jobs tick from here on. */
  onApplicationBootstrap(): void {
    this.jobs.start();
  }

  /** Ends the timers, and asks running jobs to end. `RedlockModule` waits for them, for at most its `drainTimeout`. */
  beforeApplicationShutdown(): void {
    this.jobs.stop();
  }
}
