import type { FenceCounters } from '../core/master.interface.js';

/** The counters that fencing tokens are drawn from. */
export class MemoryCounters {
  private readonly counters = new Map<string, number>();

  /** Draws a token that is larger than all the counters, and not smaller than the floor. */
  draw({ hash, fields, floor }: FenceCounters & { readonly floor: number }): number {
    return this.raise({ hash, fields, token: Math.max(floor, this.largest(hash, fields) + 1) });
  }

  /** Raises the counters to a token, where they are behind; tells the largest. */
  raise({ hash, fields, token }: FenceCounters & { readonly token: number }): number {
    const raised = Math.max(token, this.largest(hash, fields));
    for (const field of fields) this.counters.set(`${hash} ${field}`, raised);
    return raised;
  }

  clear(): void {
    this.counters.clear();
  }

  private largest(hash: string, fields: readonly number[]): number {
    return Math.max(...fields.map((field) => this.counters.get(`${hash} ${field}`) ?? 0));
  }
}
