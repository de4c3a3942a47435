/**
 * A moment, read from two clocks at once.
 *
 * Neither clock alone is enough: the monotonic clock stands still while a machine is suspended, and the wall clock can
 * be stepped back. Elapsed time is therefore the larger of the two differences.
 */
export interface Instant {
  /** Milliseconds of a clock that never runs backwards. */
  readonly monotonic: number;
  /** Milliseconds since the Unix epoch. */
  readonly wall: number;
}

/** A scheduled callback. */
export interface Timer {
  /** Cancels the callback. Has no effect if the callback has already run. */
  cancel(): void;
  /** Lets the process exit while this timer is pending. */
  unref(): Timer;
}

/** The only source of time in this library. Tests inject one that they advance by hand. */
export interface Clock {
  /** The present moment. */
  read(): Instant;
  /**
   * Calls `callback` after `delay` milliseconds.
   *
   * @param slack milliseconds by which the call may come early, so that it coincides with others; default: 0
   * @param now a reading of this turn of the event loop, if there is one: it spares another one
   */
  schedule(delay: number, callback: () => void, slack?: number, now?: Instant): Timer;
  /**
   * Calls `callback` once the event loop has read the input that is already waiting in its sockets, so that a stalled
   * process does not mistake answers that have arrived for missing ones.
   */
  afterInput(callback: () => void): void;
  /**
   * Calls `callback` in a turn of the event loop of its own, when the current work is done and so are all reactions to it: so
   * that requests made in the meantime can be sent together, and that nothing runs between `callback` and what awaits it.
   */
  afterTurn(callback: () => void): void;
  /**
   * Calls `listener` within a second after the machine resumes from a suspension or its wall clock is set, as long as any
   * timer is scheduled. Timers stand still during the suspension.
   */
  onResume?(listener: () => void): void;
}

// Milliseconds. Never negative.
// Protocol 3.1
export function elapsedBetween(from: Instant, to: Instant): number {
  return Math.max(to.monotonic - from.monotonic, to.wall - from.wall, 0); // @mutant wall-clock-only, monotonic-only-across-a-suspend
}

export function elapsedSince(clock: Clock, from: Instant): number {
  return elapsedBetween(from, clock.read());
}

// Ends early when the signal aborts. Never rejects.
export async function pause(clock: Clock, delay: number, signal: AbortSignal): Promise<undefined> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const end = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = clock.schedule(delay, end);
    signal.addEventListener('abort', end);
  });
}

export class Condition {
  private readonly waits = new Set<() => void>();

  constructor(private readonly holds: () => boolean) {}

  // To be called after each change that may make the condition hold.
  check(): void {
    if (this.waits.size === 0 || !this.holds()) return;
    for (const end of this.waits) end();
    this.waits.clear();
  }

  async met(): Promise<void> {
    if (!this.holds()) await new Promise<void>((resolve) => this.waits.add(resolve));
  }

  // At the latest after `limit` milliseconds.
  async metWithin(limit: number, clock: Pick<Clock, 'schedule'>): Promise<void> {
    if (this.holds()) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        timer.cancel();
        this.waits.delete(end);
        resolve();
      };
      const timer = clock.schedule(limit, end);
      this.waits.add(end);
    });
  }
}
