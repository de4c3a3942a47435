import { setMaxListeners } from 'node:events';
import { isLockError, type UnfinishedRun } from '../index.js';
import { jobRecords, pause, refuseStream } from '../internal.js';
import { type HeldJob, type JobContext, type JobRun, reportOf, storeRecord } from './job-locks.js';
import type { JobSettings } from './locked-job.decorators.js';

// Follows several signals until it is let go, so that a signal that lives long keeps no trace of it.
class JoinedSignal {
  private readonly controller = new AbortController();
  private readonly unfollow: (() => void)[] = [];

  constructor(...sources: readonly AbortSignal[]) {
    // It is passed to all work of a run: many listeners are no leak, of which Node would warn.
    setMaxListeners(0, this.controller.signal);
    for (const source of sources) this.follow(source);
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  letGo(): void {
    for (const unfollow of this.unfollow) unfollow();
  }

  private follow(source: AbortSignal): void {
    const abort = (): void => this.controller.abort(source.reason);
    if (source.aborted) abort();
    source.addEventListener('abort', abort);
    this.unfollow.push(() => source.removeEventListener('abort', abort));
  }
}

interface JobFailure {
  readonly error: unknown;
  readonly message: string;
}

// Never rejects; gives nothing if the method succeeded.
export async function attemptJob(where: string, work: () => unknown): Promise<JobFailure | undefined> {
  try {
    const advice = ': await it inside of the method';
    refuseStream(where, await refuseStream(where, work(), advice), advice);
    return undefined;
  } catch (error) {
    return { error, message: messageOf(error) };
  }
}

// Anything can be thrown: an error whose message is a list, an object without a prototype, a getter that throws. The
// end of the attempt has to be recorded all the same.
export function messageOf(error: unknown): string {
  try {
    // An AggregateError may have no message of its own.
    const message: unknown = error instanceof Error ? error.message || error.name : error;
    const text: unknown = typeof message === 'string' ? message : JSON.stringify(message);
    return typeof text === 'string' ? text : String(message);
  } catch {
    return 'an error without a readable message';
  }
}

interface JobExecutionOptions {
  readonly settings: JobSettings;
  readonly context: JobContext;
  readonly held: HeldJob;
  // Before this attempt.
  readonly last: jobRecords.JobRecord | undefined;
}

// Before the end of an attempt is stored again after a failure, in milliseconds.
const RETRY_DELAY = 100;

// One attempt at one tick: recorded as started, run, and recorded as ended.
export class JobExecution {
  private started: jobRecords.JobRecord | undefined;
  private isCalling = false;
  private isReported = false;

  constructor(private readonly options: JobExecutionOptions) {}

  // Resolves when a quorum of the masters knows that the tick has started.
  async start(tick: number, attempt: number): Promise<void> {
    // Protocol 12.3
    const { settings, held, last } = this.options;
    const started = jobRecords.startRecord(last, { tick, attempt }, this.now);
    await storeRecord(held.lock, started, settings.schedule); // @mutant start-recorded-before-the-run
    // The answers may have taken longer than the lock can be relied on.
    held.lock.assertHeld();
    this.started = started;
  }

  get isRunning(): boolean {
    return this.isCalling;
  }

  // Has lost its lock while the method has not returned.
  get lost(): Pick<UnfinishedRun, 'scheduledFor' | 'attempt'> | undefined {
    return this.isCalling && this.isReported ? this.attempt : undefined;
  }

  // Gives the new record; nothing if the attempt is to be repeated.
  async finish(): Promise<jobRecords.JobRecord | undefined> {
    const { started, options } = this;
    if (!started) throw new Error('an attempt must have started before it can finish');
    const { settings, context, held } = options;
    const { name } = settings;
    context.observer.started?.(name, { ...this.attempt, startedAt: new Date(started.at) });
    try {
      // This process may have been blocked since the start was stored.
      held.lock.assertHeld();
      const failure = await this.call(started);
      held.lock.assertHeld();
      if (failure && context.stopping.aborted) throw context.stopping.reason; // @mutant handed-on-is-not-failed
      const ended = jobRecords.endRecord(started, this.now, failure);
      await this.storeUntilLost(ended);
      const [run] = ended.runs;
      if (run) context.observer.ended?.(name, reportOf(run), failure?.error);
      return ended;
    } catch (error) {
      this.reportUnfinished(error);
      return undefined;
    }
  }

  private async call({ tick, attempt }: jobRecords.JobRecord): Promise<JobFailure | undefined> {
    const { settings, context, held, last } = this.options;
    const { lock } = held;
    const joined = new JoinedSignal(lock.signal, context.stopping);
    // A method that hangs would otherwise leave no trace of its loss.
    const onLoss = (): void => this.reportUnfinished(lock.loss ?? lock.signal.reason);
    lock.signal.addEventListener('abort', onLoss);
    const previous = jobRecords.lastFinished(last);
    const run: JobRun = {
      job: settings.name,
      scheduledFor: new Date(tick),
      attempt,
      previous: previous && reportOf(previous),
      signal: joined.signal,
      lock,
    };
    this.isCalling = true;
    try {
      return await held.run(() => attemptJob(context.where, () => context.call(run)));
    } finally {
      this.isCalling = false;
      lock.signal.removeEventListener('abort', onLoss);
      joined.letGo();
    }
  }

  private get attempt(): Pick<UnfinishedRun, 'scheduledFor' | 'attempt'> {
    const { tick = 0, attempt = 0 } = this.started ?? {};
    return { scheduledFor: new Date(tick), attempt };
  }

  private reportUnfinished(cause: unknown): void {
    if (this.isReported) return;
    this.isReported = true;
    const { settings, context } = this.options;
    context.observer.unfinished?.(settings.name, { ...this.attempt, isRunning: this.isCalling }, cause);
  }

  // The tick runs again unless its end is stored, so it is worth several attempts. They end after a ttl even if the
  // lock is kept: a master whose data began anew takes part in locks again, and in this lock's state never.
  private async storeUntilLost(record: jobRecords.JobRecord): Promise<void> {
    const { settings, context, held } = this.options;
    for (let attempt = 1; ; attempt++) {
      try {
        await storeRecord(held.lock, record, settings.schedule);
        return;
      } catch (error) {
        if (!isLockError(error) || !held.lock.isHeld || attempt * RETRY_DELAY > settings.ttl) throw error;
        await pause(context.clock, RETRY_DELAY, held.lock.signal);
      }
    }
  }

  private get now(): { readonly holder: string; readonly declared: string; readonly at: number } {
    const { settings, context } = this.options;
    return { holder: context.instance, declared: settings.declared, at: context.clock.read().wall };
  }
}
