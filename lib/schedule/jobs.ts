import { Injectable, Logger, type LoggerService } from '@nestjs/common';
import { DiscoveryService, ModuleRef } from '@nestjs/core';
import { SchedulerRegistry } from '@nestjs/schedule';
import { isLockError, RedlockConfigError } from '../core/errors.js';
import type { JobObserver } from '../core/jobs/job-observer.js';
import { SKIP_WORDS } from '../core/jobs/job-policy.js';
import { PartObservers } from '../core/observer.js';
import { type DeclaredMethod, declaredMethods, provided, refuseDuplicates } from '../nest/declared-methods.js';
import { CALLED_METHODS } from '../nest/lock-service.token.js';
import type { LockService } from '../nest/lock.service.js';
import { reportTo } from '../nest/module-settings.js';
import { describeDeviation, JobClock, Ticker } from './job-clock.js';
import { messageOf } from './job-execution.js';
import { JobHandedOnError } from './job-locks.js';
import { Job } from './job.js';
import { type JobDeclaration, resolveJob } from './locked-job.decorators.js';

// Of `ScheduleModule.forRoot`: they turn jobs off.
interface Switches {
  readonly cronJobs?: boolean;
  readonly intervals?: boolean;
}

// `@nestjs/schedule` provides the options of its module under this token.
const SCHEDULE_OPTIONS = 'SCHEDULE_MODULE_OPTIONS';

export interface ScheduledJob {
  readonly declaration: JobDeclaration;
  readonly locks: LockService;
  readonly job: Job;
  readonly ticker: Ticker;
  // Each job has its own: on one signal, a hundred jobs would have a hundred listeners, which looks like a leak.
  readonly stopping: AbortController;
}

@Injectable()
export class Jobs {
  private readonly logger = new Logger('Jobs');
  private readonly observers = new PartObservers('jobs', logJobsTo(this.logger), reportTo(this.logger, 'jobs'));
  private scheduled: readonly ScheduledJob[] = [];

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly modules: ModuleRef,
  ) {}

  // Also those that are turned off.
  get all(): readonly ScheduledJob[] {
    return this.scheduled;
  }

  find(): void {
    const { discovery, modules } = this;
    const clocks = new Map<LockService, JobClock>();
    this.scheduled = declaredMethods<JobDeclaration>(CALLED_METHODS.jobs, { discovery, modules }).map((method) => {
      const { locks } = method;
      const clock = clocks.get(locks) ?? this.clockOf(locks);
      clocks.set(locks, clock);
      return this.schedule(method, clock);
    });
    refuseDuplicates(
      CALLED_METHODS.jobs,
      this.scheduled.map(({ job, declaration, locks }) => ({ name: job.settings.name, declaration, locks })),
    );
    const [first] = this.scheduled;
    if (first && provided(modules, SchedulerRegistry) === undefined) {
      const requirement = 'needs ScheduleModule.forRoot() of @nestjs/schedule, whose options also turn jobs off';
      throw new RedlockConfigError(first.declaration.where, undefined, requirement);
    }
  }

  start(): void {
    const { cronJobs = true, intervals = true } = (provided(this.modules, SCHEDULE_OPTIONS) ?? {}) as Switches;
    for (const { declaration, job, ticker } of this.scheduled) {
      if (declaration.kind === 'cron' ? !cronJobs : !intervals) continue;
      ticker.start();
      job.visit();
    }
  }

  stop(): void {
    for (const { ticker } of this.scheduled) ticker.stop();
    for (const { stopping } of this.scheduled) stopping.abort(new JobHandedOnError());
  }

  observe(observer: JobObserver): () => void {
    return this.observers.add(observer);
  }

  private schedule({ declaration, locks, call }: DeclaredMethod<JobDeclaration>, clock: JobClock): ScheduledJob {
    const { observer, settings } = locks.environment;
    const stopping = new AbortController();
    const job = new Job(resolveJob(declaration, locks), {
      ...{ where: declaration.where, call, locks, clock },
      ...{ instance: settings.instance, observer: this.observers.beside(observer), stopping: stopping.signal },
    });
    return { declaration, locks, job, ticker: new Ticker(job.settings.schedule, clock, job), stopping };
  }

  private clockOf(locks: LockService): JobClock {
    const clock = new JobClock(locks.environment.clock);
    const report = reportDeviationsTo(this.logger);
    clock.onChange(() => report(clock.deviations));
    return clock;
  }
}

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
