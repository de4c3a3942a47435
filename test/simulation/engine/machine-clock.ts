import type { Instant } from '../../../lib/core/clock.js';
import type { Scheduler } from './scheduler.js';

/** The year 2025: what a wall clock without an error shows at the beginning, in milliseconds. */
export const EPOCH = Date.UTC(2025, 0, 1);

/**
 * The clocks of one machine: the monotonic one runs at the machine's rate and stands still while it is suspended, the
 * wall clock can be set.
 */
export class MachineClock {
  private since: number;
  private monotonic = 0;
  private wall: number;
  private suspended = false;

  constructor(
    private readonly scheduler: Scheduler,
    /** Seconds of this machine in a true second. */
    readonly rate: number,
    offset: number,
  ) {
    this.since = scheduler.now;
    this.wall = EPOCH + scheduler.now + offset;
  }

  read(): Instant {
    const passed = (this.scheduler.now - this.since) * this.rate;
    return { monotonic: this.suspended ? this.monotonic : this.monotonic + passed, wall: this.wall + passed };
  }

  /** The wall clock alone, in milliseconds. */
  get wallTime(): number {
    return this.wall + (this.scheduler.now - this.since) * this.rate;
  }

  /** Milliseconds by which the wall clock is ahead of true time. */
  get error(): number {
    return this.wallTime - EPOCH - this.scheduler.now;
  }

  get isSuspended(): boolean {
    return this.suspended;
  }

  step(milliseconds: number): void {
    this.settle();
    this.wall += milliseconds;
  }

  suspend(): void {
    this.settle();
    this.suspended = true;
  }

  resume(): void {
    this.settle();
    this.suspended = false;
  }

  private settle(): void {
    const { monotonic, wall } = this.read();
    this.since = this.scheduler.now;
    this.monotonic = monotonic;
    this.wall = wall;
  }
}
