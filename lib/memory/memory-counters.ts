import type { DrawRequest } from '../core/master.interface.js';

/** The counters from which fencing tokens are drawn. */
export class MemoryCounters {
  private readonly counters = new Map<number, number>();

  /** Raises the counters to one common value and returns it. */
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
