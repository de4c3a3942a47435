import type { Timer } from '../core/clock.js';
import { type JobSchedule, toleranceOf } from '../core/jobs/job-schedule.interface.js';
import type { JobClock } from './job-clock.js';

/** A timer that runs for longer misses corrections of the wall clock. In milliseconds. */
const LONGEST_SLEEP = 60_000;

/** Receives the ticks of a job. */
export interface TickListener {
  /** A tick is due now. */
  due(tick: number): void;
  /** A tick was noticed too late to count as due. */
  missed(tick: number, reason: 'late' | 'superseded'): void;
}

/**
 * Announces each nominal tick when the wall clock of this process reaches it, unless the clocks of the masters are so far
 * behind that it could not start. Timers are set for nominal times, so that delays do not add up.
 */
export class Ticker {
  private upcoming = Infinity;
  private announced: number | undefined;
  private timer: Timer | undefined;
  private unsubscribe: (() => void) | undefined;

  constructor(
    private readonly schedule: JobSchedule,
    private readonly clock: JobClock,
    private readonly listener: TickListener,
  ) {}

  /** Announces the ticks that come due from now on. */
  start(): void {
    this.unsubscribe = this.clock.onChange(() => this.arm());
    this.arm();
  }

  stop(): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.unsubscribe?.();
    this.unsubscribe = undefined;
  }

  private arm(): void {
    if (!this.unsubscribe) return;
    this.timer?.cancel();
    this.turnBack();
    const delay = this.upcoming - this.nowFor(this.upcoming);
    this.timer = this.clock.schedule(Math.min(Math.max(delay, 0), LONGEST_SLEEP), () => this.fire());
  }

  /**
   * Announces ticks once more that a wall clock has reached too early: it was set back, or the masters have shown that
   * it is ahead. Ticks that were announced in time are not repeated.
   */
  private turnBack(): void {
    const now = Math.min(this.clock.wall, this.clock.masters);
    const { announced } = this;
    if (announced !== undefined && announced - toleranceOf(this.schedule, announced) > now) this.announced = undefined;
    this.upcoming = Math.min(this.upcoming, this.schedule.next(Math.max(now, this.announced ?? now)));
  }

  /** The time by which a tick is judged: a clock that is ahead of the masters gains nothing. */
  private nowFor(tick: number): number {
    return Math.min(this.clock.wall, this.clock.masters + toleranceOf(this.schedule, tick)); // @mutant clock-of-the-masters-counts
  }

  private fire(): void {
    const now = this.nowFor(this.upcoming);
    if (now >= this.upcoming) this.announce(now);
    this.arm();
  }

  private announce(now: number): void {
    const first = this.upcoming;
    const newest = this.schedule.last(now);
    this.announced = newest;
    this.upcoming = this.schedule.next(newest);
    if (newest > first) this.listener.missed(first, 'superseded');
    if (now - newest > toleranceOf(this.schedule, newest)) this.listener.missed(newest, 'late');
    else this.listener.due(newest); // @mutant tick-is-its-nominal-time
  }
}
