import { Injectable, Logger, type LoggerService } from '@nestjs/common';
import { DiscoveryService, ModuleRef } from '@nestjs/core';
import { SchedulerRegistry } from '@nestjs/schedule';
import { isLockError, type JobObserver, type LockService, RedlockConfigError } from '../index.js';
import { calledMethods, jobRecords } from '../internal.js';
import { Ticker } from './ticker.js';
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
  private readonly observers = calledMethods.observersOf('jobs', logJobsTo(this.logger), this.logger);
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
    this.scheduled = calledMethods
      .declaredMethods<JobDeclaration>(calledMethods.CALLED_METHODS.jobs, { discovery, modules })
      .map((method) => this.schedule(method));
    calledMethods.refuseDuplicates(
      calledMethods.CALLED_METHODS.jobs,
      this.scheduled.map(({ job, declaration, locks }) => ({ name: job.settings.name, declaration, locks })),
    );
    const [first] = this.scheduled;
    if (first && calledMethods.provided(modules, SchedulerRegistry) === undefined) {
      const requirement = 'needs ScheduleModule.forRoot() of @nestjs/schedule, whose options also turn jobs off';
      throw new RedlockConfigError(first.declaration.where, undefined, requirement);
    }
  }

  start(): void {
    const { cronJobs = true, intervals = true } = (calledMethods.provided(this.modules, SCHEDULE_OPTIONS) ??
      {}) as Switches;
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

  private schedule({ declaration, locks, call }: calledMethods.DeclaredMethod<JobDeclaration>): ScheduledJob {
    const { clock, observer, settings } = locks.environment;
    const stopping = new AbortController();
    const job = new Job(resolveJob(declaration, locks), {
      ...{ where: declaration.where, call, locks, clock },
      ...{
        instance: settings.instance,
        keyPrefix: settings.keyPrefix,
        observer: this.observers.beside(observer),
        stopping: stopping.signal,
      },
    });
    return { declaration, locks, job, ticker: new Ticker(job.settings.schedule, clock, job), stopping };
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
      const meanwhile = 'this instance runs no tick of the job until the method returns';
      if (cause instanceof JobHandedOnError) logger.log(`${line} is handed on by the shutdown, ${consequence}`);
      else if (isRunning) logger.warn(`${line} has lost its lock, ${consequence}; ${meanwhile}: ${messageOf(cause)}`);
      else logger.warn(`${line} has ended here without a record, ${consequence}: ${messageOf(cause)}`);
    },
    skipped: (job, { scheduledFor, reason }) =>
      void logger.debug?.(
        `job ${job} of ${scheduledFor.toISOString()} does not run here: ${jobRecords.SKIP_WORDS[reason]}`,
      ),
    conflicting: (job, { here, there, instance, keyPrefix }) =>
      void logger.warn(
        `job ${job} is ${here} here, and ${there} on instance ${instance}: two applications take each other's ticks. Give ` +
          `each application a \`keyPrefix\` of its own (it is '${keyPrefix}'), or each job a name. If one has replaced the ` +
          'other, this ends with the deployment',
      ),
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

function stackOf(error: unknown): string | undefined {
  return error instanceof Error && typeof error.stack === 'string' ? error.stack : undefined;
}
