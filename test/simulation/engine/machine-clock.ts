import type { Instant } from '../../../lib/redlock/clock.js';
import type { Scheduler } from './scheduler.js';

/** The start of 2025, in milliseconds: what a wall clock without an error shows at the beginning. */
export const EPOCH = Date.UTC(2025, 0, 1);

/** A reading of the clocks, and when it was taken. */
export interface SimInstant extends Instant {
  readonly takenAt: number;
}

/**
 * The clocks of one machine. Both run at the machine's rate. The monotonic clock stops while the machine is suspended.
 * Both clocks stop while the hypervisor does not run the machine. The wall clock can be set.
 */
export class MachineClock {
  private since: number;
  private monotonic = 0;
  private wall: number;
  private suspended = false;
  private stops = 0;
  private current: number;
  private least: number;
  /** Seconds of the monotonic clock per second of the wall clock. */
  private share = 1;

  constructor(
    private readonly scheduler: Scheduler,
    rate: number,
    offset: number,
  ) {
    this.current = this.least = rate;
    this.since = scheduler.now;
    this.wall = EPOCH + scheduler.now + offset;
  }

  read(): SimInstant {
    const { passed } = this;
    return {
      monotonic: this.suspended ? this.monotonic : this.monotonic + passed * this.share,
      wall: this.wall + passed,
      takenAt: this.scheduler.now,
    };
  }

  get wallTime(): number {
    return this.wall + this.passed;
  }

  /** Seconds of this machine per second of true time. */
  get rate(): number {
    return this.current;
  }

  /** The same for the monotonic clock alone. */
  get monotonicRate(): number {
    return this.current * this.share;
  }

  get slowest(): number {
    return this.least;
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

  /** Stops both clocks until {@link start}, as in a virtual machine that does not run. */
  stop(): void {
    this.settle();
    this.stops++;
  }

  start(): void {
    this.settle();
    this.stops--;
  }

  /** Multiplies the rate from now on, as when a clock is corrected gradually. */
  slew(factor: number): void {
    this.settle();
    this.current *= factor;
    this.least = Math.min(this.least, this.monotonicRate);
  }

  /** Sets the monotonic clock forward, which no sound clock does. */
  advance(milliseconds: number): void {
    this.settle();
    this.monotonic += milliseconds;
  }

  /** Multiplies the rate of the monotonic clock alone from now on. */
  slewMonotonic(factor: number): void {
    this.settle();
    this.share *= factor;
    this.least = Math.min(this.least, this.monotonicRate);
  }

  private get passed(): number {
    return this.stops > 0 ? 0 : (this.scheduler.now - this.since) * this.current;
  }

  private settle(): void {
    const { monotonic, wall } = this.read();
    this.since = this.scheduler.now;
    this.monotonic = monotonic;
    this.wall = wall;
  }
}
