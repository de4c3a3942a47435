import type { FenceCounters } from '../core/master.interface.js';

/** The counters that fencing tokens are drawn from. */
export class MemoryCounters {
  private readonly counters = new Map<number, number>();

  /** Draws a token that is larger than all the counters, and not smaller than the floor. */
  draw({ fields, floor }: FenceCounters & { readonly floor: number }): number {
    return this.raise({ fields, token: Math.max(floor, this.largest(fields) + 1) });
  }

  /** Raises the counters to a token, where they are behind; tells the largest. */
  raise({ fields, token }: FenceCounters & { readonly token: number }): number {
    const raised = Math.max(token, this.largest(fields));
    for (const field of fields) this.counters.set(field, raised);
    return raised;
  }

  clear(): void {
    this.counters.clear();
  }

  private largest(fields: readonly number[]): number {
    return Math.max(...fields.map((field) => this.counters.get(field) ?? 0));
  }
}
