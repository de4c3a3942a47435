import { type Clock, elapsedSince, type Instant, type Timer } from '../core/clock.js';

/** The time of this process, and the time of the masters as far as they have shown it. */
export class JobClock {
  private answer: { readonly time: number; readonly at: Instant } | undefined;
  private readonly listeners = new Set<() => void>();

  constructor(private readonly clock: Clock) {
    clock.onResume?.(() => this.announce());
  }

  /** The wall clock of this process, in milliseconds since the epoch. */
  get wall(): number {
    return this.clock.read().wall;
  }

  /** The clocks of the masters, in milliseconds since the epoch; the wall clock until they have answered once. */
  get masters(): number {
    return this.answer ? this.answer.time + elapsedSince(this.clock, this.answer.at) : this.wall;
  }

  /** The masters' clocks show this time now. */
  synchronize(time: number): void {
    this.answer = { time, at: this.clock.read() };
    this.announce();
  }

  /** Calls `listener` after each change of the clocks that timers cannot foresee. */
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  schedule(delay: number, callback: () => void): Timer {
    return this.clock.schedule(delay, callback);
  }

  /** Resolves after `delay` milliseconds, or when the signal aborts. Never rejects. */
  async pause(delay: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        timer.cancel();
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = this.clock.schedule(delay, end);
      signal.addEventListener('abort', end);
    });
  }

  private announce(): void {
    for (const listener of this.listeners) listener();
  }
}
