import type { Clock, Instant, Timer } from '../redlock/clock.js';

// Captured at load time: fake timers in a test must stop neither masters in memory nor the clock that it advances.
export const { queueMicrotask, setImmediate } = globalThis;

interface PendingTimer {
  readonly due: number;
  readonly callback: () => void;
}

// In milliseconds.
const NOTICED_WITHIN = 1_000;
// After so many turns of the event loop without further work, all work that needs no time is done.
const TURNS = 3;

/** A clock that stands still until it is advanced, for tests that let time pass without waiting. */
export class ManualClock implements Clock {
  private readonly timers = new Set<PendingTimer>();
  private readonly listeners: (() => void)[] = [];
  private monotonic = 0;
  private wall: number;
  private turns = 0;

  /** @param startsAt initial wall time in milliseconds since the Unix epoch; default: the beginning of the year 2000 */
  constructor(startsAt: number = Date.UTC(2000, 0, 1)) {
    this.wall = startsAt;
  }

  /** Number of timers that have not fired yet. */
  get pendingTimers(): number {
    return this.timers.size;
  }

  read(): Instant {
    return { monotonic: this.monotonic, wall: this.wall };
  }

  schedule(delay: number, callback: () => void): Timer {
    const pending = { due: this.monotonic + Math.max(0, delay), callback };
    this.timers.add(pending);
    const timer: Timer = { cancel: () => void this.timers.delete(pending), unref: () => timer };
    return timer;
  }

  afterInput(callback: () => void): void {
    queueMicrotask(callback);
  }

  afterTurn(callback: () => void): void {
    this.turns++;
    setImmediate(callback);
  }

  /** Advances the time. Fires the timers on the way, in their order, and lets each one's work settle. */
  async advance(milliseconds: number): Promise<void> {
    const end = this.monotonic + milliseconds;
    await this.settle();
    for (let timer = this.nextUntil(end); timer; timer = this.nextUntil(end)) {
      this.moveTo(timer.due);
      this.timers.delete(timer);
      timer.callback();
      await this.settle();
    }
    this.moveTo(end);
  }

  /** Waits until all work that needs no time is done. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < TURNS;) {
      const { turns } = this;
      await new Promise((resolve) => setImmediate(resolve));
      quiet = this.turns === turns ? quiet + 1 : 0;
    }
  }

  /** Advances the time without firing timers, like a blocked event loop. The timers fire at the next `advance`. */
  stall(milliseconds: number): void {
    this.moveTo(this.monotonic + milliseconds);
  }

  /** Steps the wall clock forward or back, as an operator or a time server does. */
  stepWall(milliseconds: number): void {
    this.suspend(milliseconds);
  }

  /** Simulates a suspended machine: only the wall clock moves. If a timer is pending, listeners run a second later. */
  suspend(milliseconds: number): void {
    this.wall += milliseconds;
    if (this.timers.size > 0) this.schedule(NOTICED_WITHIN, () => this.listeners.forEach((listener) => listener()));
  }

  onResume(listener: () => void): void {
    this.listeners.push(listener);
  }

  private moveTo(moment: number): void {
    const passed = Math.max(0, moment - this.monotonic);
    this.monotonic += passed;
    this.wall += passed;
  }

  private nextUntil(end: number): PendingTimer | undefined {
    let next: PendingTimer | undefined;
    for (const timer of this.timers) if (timer.due <= end && (!next || timer.due < next.due)) next = timer;
    return next;
  }
}
