import { Injectable, Logger } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { combineJobObservers, type JobObserver } from '../core/jobs/job-observer.js';
import type { LockService } from '../nest/lock.service.js';
import { reportTo } from '../nest/module-settings.js';
import { type FoundJob, JobExplorer } from './job-explorer.js';
import { JobClock, Ticker } from './job-clock.js';
import { JobHandedOnError, locksOf } from './job-locks.js';
import { logJobsTo, reportDeviationsTo } from './job-log.js';
import { Job } from './job.js';

// Of `ScheduleModule.forRoot`: they turn jobs off.
interface Switches {
  readonly cronJobs?: boolean;
  readonly intervals?: boolean;
}

// `@nestjs/schedule` provides the options of its module under this token.
const SCHEDULE_OPTIONS = 'SCHEDULE_MODULE_OPTIONS';

export interface ScheduledJob {
  readonly found: FoundJob;
  readonly job: Job;
  readonly ticker: Ticker;
  // Each job has its own: on one signal, a hundred jobs would have a hundred listeners, which looks like a leak.
  readonly stopping: AbortController;
}

@Injectable()
export class Jobs {
  private readonly logger = new Logger('Jobs');
  private readonly observers: JobObserver[] = [logJobsTo(this.logger)];
  private scheduled: readonly ScheduledJob[] = [];

  constructor(
    private readonly explorer: JobExplorer,
    private readonly modules: ModuleRef,
  ) {}

  // Also those that are turned off.
  get all(): readonly ScheduledJob[] {
    return this.scheduled;
  }

  find(): void {
    const clocks = new Map<LockService, JobClock>();
    this.scheduled = this.explorer.explore().map((found) => {
      const { locks } = found;
      const clock = clocks.get(locks) ?? this.clockOf(locks);
      clocks.set(locks, clock);
      return this.schedule(found, clock);
    });
  }

  start(): void {
    const { cronJobs = true, intervals = true } = this.switches();
    for (const { found, job, ticker } of this.scheduled) {
      if (found.declaration.kind === 'cron' ? !cronJobs : !intervals) continue;
      ticker.start();
      job.visit();
    }
  }

  stop(): void {
    for (const { ticker } of this.scheduled) ticker.stop();
    for (const { stopping } of this.scheduled) stopping.abort(new JobHandedOnError());
  }

  observe(observer: JobObserver): () => void {
    this.observers.push(observer);
    return () => {
      const index = this.observers.indexOf(observer);
      if (index >= 0) this.observers.splice(index, 1);
    };
  }

  private schedule(found: FoundJob, clock: JobClock): ScheduledJob {
    const { settings, handler, locks } = found;
    const stopping = new AbortController();
    const context = {
      locks: locksOf(locks),
      clock,
      observer: combineJobObservers(
        () => [...this.observers, ...(locks.environment.observer.jobs ? [locks.environment.observer.jobs] : [])],
        reportTo(this.logger, 'jobs'),
      ),
      instance: locks.environment.settings.instance,
      stopping: stopping.signal,
    };
    const job = new Job(settings, handler, context);
    return { found, job, ticker: new Ticker(settings.schedule, clock, job), stopping };
  }

  private clockOf(locks: LockService): JobClock {
    const clock = new JobClock(locks.environment.clock);
    const report = reportDeviationsTo(this.logger);
    clock.onChange(() => report(clock.deviations));
    return clock;
  }

  private switches(): Switches {
    try {
      return this.modules.get<Switches>(SCHEDULE_OPTIONS, { strict: false });
    } catch {
      return {};
    }
  }
}
