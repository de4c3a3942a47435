import { type JobRecord, readJobRecord } from '../../../lib/operate/job-record.js';
import { toleranceOf } from '../../../lib/schedule/job-policy.js';
import type { Lock } from '../../../lib/locks/lock.js';
import { type Property, Violation } from '../properties/violation.js';
import type { JobInstance } from './job-instance.js';
import type { JobsWorld } from './jobs-world.js';

/** How far clocks drift during a run, in milliseconds. */
const CLOCK_SLACK = 1_000;

/** One call of the method of the job. Moments are in true time, in milliseconds. */
export interface Run {
  readonly instance: JobInstance;
  readonly tick: number;
  readonly attempt: number;
  readonly lock: Lock;
  readonly startedAt: number;
  /** `Infinity` while it runs; when its instance crashed, that moment. */
  endedAt: number;
  /** Whether it ended with an error because of the shutdown of its instance. */
  isHandedOn: boolean;
}

/** What is known about one tick, from all instances. */
export interface TickHistory {
  readonly runs: Run[];
  /** Whether an instance has asked to store that it started or is not run. */
  isHandled: boolean;
  /** When a record of its end was acknowledged or read; `Infinity` before. */
  finishedAt: number;
  /** When a record of its start, for the last attempt, was acknowledged or read; `-Infinity` before. */
  startedAt: number;
  /** How it ended. */
  state: JobRecord['state'] | undefined;
}

/**
 * Everything that instances do with the record and the method of the job, in the order of true time, and the promises
 * that can be checked at once.
 */
export class Ledger {
  readonly ticks = new Map<number, TickHistory>();
  readonly runs: Run[] = [];
  /** Whether more masters have lost their data than the condition allows: some promises are void from then on. */
  isVoid = false;
  /** The tick of the first record. */
  firstTick: number | undefined;
  /** The newest record that was acknowledged, or returned by a reading. */
  private floor: JobRecord | undefined;
  private newestFinished = -Infinity;

  constructor(private readonly world: JobsWorld) {}

  tick(tick: number): TickHistory {
    const known = this.ticks.get(tick);
    if (known) return known;
    const history: TickHistory = {
      ...{ runs: [], isHandled: false, finishedAt: Infinity, startedAt: -Infinity, state: undefined },
    };
    this.ticks.set(tick, history);
    return history;
  }

  get active(): readonly Run[] {
    return this.runs.filter(({ endedAt }) => endedAt === Infinity);
  }

  /** The newest record, as far as any instance knows it. */
  get record(): JobRecord | undefined {
    return this.floor;
  }

  /**
   * (d) A reading returns the newest record that was acknowledged or returned before the reading began, or a later one.
   * Exempt: after more masters have lost their data than the condition allows.
   */
  noteReading(instance: JobInstance, floor: JobRecord | undefined, value: unknown): void {
    const record = readJobRecord(value);
    if (isBefore(record, floor) && !this.isVoid) {
      this.fail('nothing remembered goes back', `${instance.name} reads ${show(record)} after ${show(floor)}`);
    }
    if (record) this.know(record);
  }

  noteStoring(instance: JobInstance, record: JobRecord): void {
    const history = this.tick(record.tick);
    history.isHandled = true;
    const run = history.runs.findLast((one) => one.instance === instance);
    // (b) for a shutdown: what was handed on counts as crashed, and not as failed.
    if (run?.isHandedOn && record.state === 'failed' && run.attempt === record.attempt) {
      this.fail('a crashed tick runs again, or never', `${instance.name} records ${show(record)}, which it handed on`);
    }
  }

  /**
   * (d) A record that is acknowledged is newer than everything that was acknowledged or returned before it. Exempt: as
   * for a reading.
   */
  noteAcknowledged(instance: JobInstance, record: JobRecord): void {
    if (!isBefore(this.floor, record) && !this.isVoid) {
      const message = `${instance.name} stores ${show(record)} after ${show(this.floor)}`;
      this.fail('nothing remembered goes back', message);
    }
    this.know(record);
  }

  noteStart(instance: JobInstance, { tick, attempt }: Pick<Run, 'tick' | 'attempt'>, lock: Lock): Run {
    const { world } = this;
    const { now } = world.scheduler;
    const history = this.tick(tick);
    const run: Run = {
      ...{ instance, tick, attempt, lock, startedAt: now, endedAt: Infinity, isHandedOn: false },
    };
    const what = `${instance.name} starts ${world.nameOf(tick)}, attempt ${attempt},`;
    if (world.ticks.last(tick) !== tick) {
      // Otherwise instances whose clocks differ would not know that they mean the same tick.
      this.fail('a tick is its nominal time', `${what} which is not in the schedule`);
    }
    // (a) Never again, and nothing older either: what is older was finished, given up or skipped before. Exempt: after more
    // masters have lost their data than the condition allows, if the clocks differ by more than the rule about that allows.
    const isKnown = !this.isVoid || world.clocksAgreeOn(tick);
    if (isKnown && (history.finishedAt < now || tick <= this.newestFinished)) {
      this.fail('a finished tick never starts again', `${what} although the record says ${show(this.floor)}`);
    }
    // (f) Exempt: as for (a).
    if (isKnown && history.runs.length + 1 > attempt) {
      this.fail('the attempt bounds the starts', `${what} which is start ${history.runs.length + 1}`);
    }
    // (b) for `recover: false`. Exempt: as for (a).
    if (isKnown && !world.plan.policy.recover && history.runs.length > 0) {
      this.fail('a crashed tick runs again, or never', `${what} although recover is false`);
    }
    // (g) By the clock of the machine, or of the one that made the first attempt. Without exemption.
    const early = tick - (attempt === 1 ? instance.process.clocks.wallTime : world.latestTime);
    if (early > CLOCK_SLACK) this.fail('no tick starts early', `${what} ${early.toFixed(0)} ms too early`);
    // (h) Without exemption: there was no record before the first instance, whose first one is of a newer tick.
    const age = world.firstStart - toleranceOf(world.ticks, tick) - CLOCK_SLACK - tick;
    if (age > 0) {
      this.fail('a new job runs nothing old', `${what} which was due before any instance was up`);
    }
    history.runs.push(run);
    this.runs.push(run);
    this.noteRareStart(run, history);
    this.checkBeliefs();
    return run;
  }

  /**
   * (c) Of all runs that have not ended, at most one is on an instance that executes code and whose lock says that it is
   * held. Exempt: an instance that stands still, until it goes on; it believes nothing in between.
   */
  checkBeliefs(): void {
    const believers = this.active.filter(({ instance, lock }) => instance.process.isRunning && lock.isHeld);
    if (believers.length < 2) return;
    const names = believers.map(({ instance, tick }) => `${instance.name} (${this.world.nameOf(tick)})`);
    this.fail('one instance runs a job at a time', `${names.join(' and ')} believe that they have the lock`);
  }

  fail(property: Property, message: string): never {
    const loss = this.isVoid ? ', after a great loss' : '';
    throw new Violation(property, this.world.scheduler.now, message + loss);
  }

  private know(record: JobRecord): void {
    const { now } = this.world.scheduler;
    const history = this.tick(record.tick);
    this.firstTick ??= record.tick;
    if (isBefore(this.floor, record) || this.isVoid) this.floor = record;
    if (record.state === 'started') {
      history.startedAt = now;
      return;
    }
    history.finishedAt = Math.min(history.finishedAt, now);
    history.state = record.state;
    this.newestFinished = Math.max(this.newestFinished, record.tick);
  }

  private noteRareStart({ instance, tick, attempt, startedAt }: Run, { runs }: TickHistory): void {
    const { world } = this;
    const before = runs.at(-2);
    if (before && before.instance.index !== instance.index) world.reached('a tick ran again on another instance');
    if (attempt >= 3) world.reached('a tick was started three times or more');
    const others = this.active.filter((run) => run.instance !== instance && run.startedAt < startedAt);
    if (others.some((run) => !run.instance.process.isRunning)) {
      world.reached('an instance started a run while a paused one believed that it ran');
    }
    const tolerance = toleranceOf(world.ticks, tick);
    if (attempt === 1 && instance.bornAt > tick + tolerance) world.reached('a missed tick was caught up');
    const ahead = instance.process.clocks.wallTime - world.mastersTime;
    if (attempt === 1 && ahead > tolerance)
      world.reached('a tick started on an instance whose clock was minutes ahead');
    if (attempt === 1 && ahead < -tolerance) {
      world.reached('a tick started on an instance whose clock was minutes behind');
    }
  }
}

/** Whether a record is older than another one: by tick, then by attempt, and a start is older than its end. */
function isBefore(one: JobRecord | undefined, other: JobRecord | undefined): boolean {
  if (!one || !other) return !one && other !== undefined;
  if (one.tick !== other.tick) return one.tick < other.tick;
  if (one.attempt !== other.attempt) return one.attempt < other.attempt;
  return one.state === 'started' && other.state !== 'started';
}

export function show(record: JobRecord | undefined): string {
  if (!record) return 'no record';
  return `${record.state} ${new Date(record.tick).toISOString()} (${record.attempt})`;
}
