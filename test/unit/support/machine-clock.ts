import type { Clock, Instant, Timer } from '../../../lib/redlock/clock.js';
import type { ManualClock } from '../../../lib/memory/manual-clock.js';

/** The clocks of a machine: its masters are on others, whose clocks stay right. */
export class MachineClock implements Clock {
  private missed = 0;
  private readonly listeners: (() => void)[] = [];

  constructor(
    private readonly others: ManualClock,
    /** Milliseconds by which its wall clock is ahead of the others. */
    public ahead = 0,
  ) {}

  read(): Instant {
    const { monotonic, wall } = this.others.read();
    return { monotonic: monotonic - this.missed, wall: wall + this.ahead };
  }

  schedule(delay: number, callback: () => void): Timer {
    return this.others.schedule(delay, callback);
  }

  afterInput(callback: () => void): void {
    this.others.afterInput(callback);
  }

  afterTurn(callback: () => void): void {
    this.others.afterTurn(callback);
  }

  onResume(listener: () => void): void {
    this.listeners.push(listener);
  }

  /** The machine is suspended, or stunned and its wall clock then corrected. */
  suspend(milliseconds: number): void {
    this.others.stall(milliseconds);
    this.missed += milliseconds;
  }

  /** What the real clock does within a second. */
  notice(): void {
    for (const listener of this.listeners) listener();
  }
}
