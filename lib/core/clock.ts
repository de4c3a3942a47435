import { TimerQueue } from './timer-queue.js';

/**
 * A moment, read from two clocks at once.
 *
 * Neither clock alone is enough: the monotonic one stands still while a machine is suspended, the wall clock can be
 * stepped back. Elapsed time is therefore the larger of the two differences.
 */
export interface Instant {
  /** Milliseconds of a clock that never goes back. */
  readonly monotonic: number;
  /** Milliseconds since the Unix epoch. */
  readonly wall: number;
}

/** A callback that waits for its time. */
export interface Timer {
  /** Forget the callback. Harmless when it has run already. */
  cancel(): void;
  /** Do not keep the process alive for this timer. */
  unref(): Timer;
}

/** The only source of time in this library. Tests inject one that they move by hand. */
export interface Clock {
  /** The present moment. */
  read(): Instant;
  /**
   * Calls back after `delay` milliseconds.
   *
   * @param slack milliseconds by which it may be earlier, so that it comes together with others; default: 0
   */
  schedule(delay: number, callback: () => void, slack?: number): Timer;
  /**
   * Calls back once the event loop has read what already waits in its sockets, so that a stalled process does not
   * take answers that have arrived for answers that are missing.
   */
  afterInput(callback: () => void): void;
  /** Calls back when what is happening now has been done, so that what is asked meanwhile can be asked together. */
  afterTurn(callback: () => void): void;
}

/** Milliseconds from one moment to another, never negative. */
export function elapsedBetween(from: Instant, to: Instant): number {
  return Math.max(to.monotonic - from.monotonic, to.wall - from.wall, 0);
}

/** Milliseconds since a moment. */
export function elapsedSince(clock: Clock, from: Instant): number {
  return elapsedBetween(from, clock.read());
}

/** The clocks and timers of this process. All timers share one of Node's. */
export class SystemClock implements Clock {
  private readonly timers = new TimerQueue((keepsAlive) => this.keepAlive(keepsAlive));
  private handle: NodeJS.Timeout | undefined;
  /** When the handle fires. */
  private armedFor = Infinity;

  read(): Instant {
    return { monotonic: performance.now(), wall: Date.now() };
  }

  schedule(delay: number, callback: () => void, slack = 0): Timer {
    const now = performance.now();
    const due = dueAt(now + delay, slack);
    const timer = this.timers.add(due, callback);
    if (due < this.armedFor) this.arm(due, now);
    return timer;
  }

  afterInput(callback: () => void): void {
    // Timers run before the poll phase and immediates after it: two turns guarantee one full read in between,
    // whichever phase we are called from.
    setImmediate(() => setImmediate(callback));
  }

  afterTurn(callback: () => void): void {
    setImmediate(callback);
  }

  private arm(due: number, now: number): void {
    clearTimeout(this.handle);
    this.armedFor = due;
    this.handle = setTimeout(() => this.fire(), Math.ceil(due - now));
    if (!this.timers.keepsAlive) this.handle.unref();
  }

  private fire(): void {
    this.armedFor = Infinity;
    this.handle = undefined;
    try {
      // Node counts from the beginning of a turn of the event loop, so a timer of its can be early.
      this.timers.run(performance.now());
    } finally {
      const next = this.timers.nextDue;
      if (next !== undefined && next < this.armedFor) this.arm(next, performance.now());
    }
  }

  private keepAlive(keepsAlive: boolean): void {
    if (keepsAlive) this.handle?.ref();
    else this.handle?.unref();
  }
}

/** With some slack, timers gather at multiples of a power of two: what is due at the same time can be done together. */
function dueAt(moment: number, slack: number): number {
  const grid = slack < 2 ? 1 : 2 ** Math.floor(Math.log2(slack));
  return grid === 1 ? Math.ceil(moment) : Math.floor(moment / grid) * grid;
}
