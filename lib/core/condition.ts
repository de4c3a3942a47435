import type { Clock } from './clock.js';

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
