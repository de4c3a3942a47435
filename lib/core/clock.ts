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
  /** Calls back after `delay` milliseconds. */
  schedule(delay: number, callback: () => void): Timer;
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

class SystemTimer implements Timer {
  private readonly handle: NodeJS.Timeout;

  constructor(delay: number, callback: () => void) {
    this.handle = setTimeout(callback, delay);
  }

  cancel(): void {
    clearTimeout(this.handle);
  }

  unref(): this {
    this.handle.unref();
    return this;
  }
}

/** The clocks and timers of this process. */
export class SystemClock implements Clock {
  read(): Instant {
    return { monotonic: performance.now(), wall: Date.now() };
  }

  schedule(delay: number, callback: () => void): Timer {
    return new SystemTimer(delay, callback);
  }

  afterInput(callback: () => void): void {
    // Timers run before the poll phase and immediates after it: two turns guarantee one full read in between,
    // whichever phase we are called from.
    setImmediate(() => setImmediate(callback));
  }

  afterTurn(callback: () => void): void {
    setImmediate(callback);
  }
}
