import { isLockError, type JobReport, type JobSkip, type JobSkipReason, RedlockConfigError } from '../index.js';
import { jobRecords, pause } from '../internal.js';
import { decideJob } from './job-policy.js';
import { type HeldJob, type JobContext, JobHandedOnError, reportOf, storeRecord } from './job-locks.js';
import { JobExecution } from './job-execution.js';
import type { JobSettings } from './locked-job.decorators.js';

// After a failure, before the next attempt to take the lock, in milliseconds.
const RETRY_DELAY = 500;
// In milliseconds: one acquisition waits this long, for another instance or for masters, and then begins anew. An outage is
// reported when it ends.
const WAIT = 30_000;

// One job on this instance. Takes the lock of the job for each tick and does what the record of the job requires. While
// another instance has the lock it waits, so that it can run the tick again if that instance crashes.
export class Job {
  // The newest tick that came due here and is not settled.
  private pending: number | undefined;
  // To look at the record although no tick came due.
  private isVisiting = false;
  private isWorking = false;
  private execution: JobExecution | undefined;
  private readonly conflicts = new Set<string>();
  private skip: JobSkip | undefined;

  constructor(
    readonly settings: JobSettings,
    private readonly context: JobContext,
  ) {}

  get lastSkip(): JobSkip | undefined {
    return this.skip;
  }

  get lost(): JobReport['lost'] {
    return this.execution?.lost;
  }

  // For a tick whose instance crashed, or that was missed.
  visit(): void {
    this.isVisiting = true;
    this.begin();
  }

  due(tick: number): void {
    // While the end is being stored, no tick runs: the record will say whether one did.
    if (this.execution?.isRunning && this.settings.policy.overlap === 'skip') {
      this.noteSkip(tick, 'overlap');
      return;
    }
    if (this.pending !== undefined) this.noteSkip(this.pending, 'superseded');
    this.pending = tick;
    this.begin();
  }

  missed(tick: number, reason: 'late' | 'superseded'): void {
    // Another instance may run the tick now, and crash: this one has to be in the queue then.
    this.visit();
    if (!this.settings.policy.catchUp) this.noteSkip(tick, reason);
  }

  private begin(): void {
    if (this.isWorking) return;
    this.isWorking = true;
    void this.work().finally(() => (this.isWorking = false));
  }

  private async work(): Promise<void> {
    const { clock, observer, stopping } = this.context;
    while ((this.pending !== undefined || this.isVisiting) && !stopping.aborted) {
      try {
        await this.takeTurn();
      } catch (error) {
        if (isLockError(error, 'LOCK_SERVICE_STOPPED') || error instanceof JobHandedOnError) return;
        if (isLockError(error, 'LOCK_NOT_ACQUIRED')) continue; // @mutant refused-instances-come-back
        observer.delayed?.(this.settings.name, error);
        if (!canSucceedLater(error)) this.settle(Infinity);
        await pause(clock, RETRY_DELAY, stopping);
      }
    }
  }

  private async takeTurn(): Promise<void> {
    const { resource, ttl, maxHold } = this.settings;
    const { locks, stopping } = this.context;
    const held = await locks.hold([resource], { ttl, maxHold, wait: WAIT, signal: stopping }); // @mutant refused-instances-wait
    try {
      await this.decideUnder(held);
    } finally {
      await held.end();
    }
  }

  private async decideUnder(held: HeldJob): Promise<void> {
    const { schedule, policy, declared } = this.settings;
    const { clock, instance, stopping } = this.context;
    // What the record may lack is marked below. A crash before that must not make the record look certain.
    const { value, since } = await held.lock.state.read({ leavesUncertain: true });
    let record = this.recordIn(value); // @mutant record-read-before-the-decision
    this.noteConflict(record);
    this.noteSuccess(record);
    while (!stopping.aborted) {
      const situation = { since, record, time: clock.read().wall, due: this.pending };
      const decision = decideJob(situation, schedule, policy);
      switch (decision.action) {
        case 'run': {
          record = await this.run(held, record, decision);
          // The next holder of the lock runs the tick again, which may be this instance.
          if (!record) return;
          this.noteSuccess(record);
          break;
        }
        case 'mark':
          record = jobRecords.markRecord(record, decision, { holder: instance, declared, at: clock.read().wall });
          await storeRecord(held.lock, record, schedule);
          if (decision.tick !== this.pending) this.noteSkip(decision.tick, decision.state);
          break;
        case 'skip':
          this.settle(decision.tick);
          this.noteSkip(decision.tick, decision.reason);
          return;
        case 'rest':
          this.settle(-Infinity);
          return;
      }
    }
  }

  private async run(
    held: HeldJob,
    last: jobRecords.JobRecord | undefined,
    { tick, attempt }: { readonly tick: number; readonly attempt: number },
  ): Promise<jobRecords.JobRecord | undefined> {
    const { settings, context } = this;
    const execution = new JobExecution({ settings, context, held, last });
    await execution.start(tick, attempt);
    this.execution = execution;
    // Until the end is recorded, this instance is to come back to the tick.
    this.isVisiting = true;
    if (this.pending !== undefined && this.pending <= tick) this.pending = undefined;
    try {
      return await execution.finish();
    } finally {
      this.execution = undefined;
    }
  }

  private recordIn(value: unknown): jobRecords.JobRecord | undefined {
    if (value === undefined || value === null) return undefined;
    const record = jobRecords.readJobRecord(value);
    if (record) return record;
    const { resource } = this.settings;
    throw new RedlockConfigError(
      'state',
      resource,
      'must be the record of a job: nothing else may set the state of this lock',
    );
  }

  // Nothing is left to do about ticks up to this one.
  private settle(tick: number): void {
    this.isVisiting = false;
    if (this.pending !== undefined && this.pending <= tick) this.pending = undefined;
  }

  private noteConflict({ declared: there, holder }: Partial<jobRecords.JobRecord> = {}): void {
    const { name, declared: here } = this.settings;
    if (there === undefined || holder === undefined || there === here || this.conflicts.has(there)) return;
    this.conflicts.add(there);
    const { observer, keyPrefix } = this.context;
    observer.conflicting?.(name, { here, there, instance: holder, keyPrefix });
  }

  private noteSuccess(record: jobRecords.JobRecord | undefined): void {
    const success = jobRecords.lastSuccess(record);
    if (success) this.context.observer.succeeded?.(this.settings.name, reportOf(success));
  }

  private noteSkip(tick: number, reason: JobSkipReason): void {
    const { clock, observer } = this.context;
    this.skip = { scheduledFor: new Date(tick), at: new Date(clock.read().wall), reason };
    observer.skipped?.(this.settings.name, this.skip);
  }
}

// A configuration error stays; every other answer of the masters may change.
function canSucceedLater(error: unknown): boolean {
  return isLockError(error) && !isLockError(error, 'LOCK_CONFIG');
}
