import type { Clock } from './clock.js';

/** Lets any number of callers wait until a condition holds. */
export class Condition {
  private readonly waits = new Set<() => void>();

  constructor(private readonly holds: () => boolean) {}

  /** Ends the waits if the condition holds. To be called after each change that may make it hold. */
  check(): void {
    if (this.waits.size === 0 || !this.holds()) return;
    for (const end of this.waits) end();
    this.waits.clear();
  }

  /** Resolves when the condition holds. */
  async met(): Promise<void> {
    if (!this.holds()) await new Promise<void>((resolve) => this.waits.add(resolve));
  }

  /** Resolves when the condition holds or, at the latest, after `limit` milliseconds. */
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
