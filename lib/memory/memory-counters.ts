import type { DrawRequest } from '../core/master.interface.js';

/** The counters that fencing tokens are drawn from. */
export class MemoryCounters {
  private readonly counters = new Map<number, number>();

  /** Raises the counters, and returns the largest. */
  draw({ counters, atLeast, isFirst }: Pick<DrawRequest, 'counters' | 'atLeast' | 'isFirst'>): number {
    const largest = Math.max(...counters.map((counter) => this.counters.get(counter) ?? 0));
    const drawn = Math.max(largest + (isFirst ? 1 : 0), atLeast);
    for (const counter of counters) this.counters.set(counter, drawn);
    return drawn;
  }

  clear(): void {
    this.counters.clear();
  }
}
