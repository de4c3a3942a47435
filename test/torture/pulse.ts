import { now } from './now.js';

/** Milliseconds. */
const PERIOD = 5;
/** A delay of at most this much is normal for a timer among others, in milliseconds. */
const TOLERANCE = 2 * PERIOD;
/** How long beats are remembered, in milliseconds: longer than any pause and any operation. */
const MEMORY = 60_000;

/**
 * Measures for how long this process did not run, because it was stopped, or because the machine or its own work was in
 * the way.
 */
export class Pulse {
  /** Only the gaps are stored, because most beats are on time. */
  private readonly gaps: { readonly from: number; readonly to: number }[] = [];
  private last = now();

  constructor() {
    setInterval(() => this.beat(), PERIOD).unref();
  }

  /** Milliseconds without execution between two times. The later one must not be before the last beat. */
  stalledBetween(from: number, to: number): number {
    const open = { from: this.last + PERIOD, to };
    const gaps = to - this.last > TOLERANCE ? [...this.gaps, open] : this.gaps;
    return gaps.reduce((sum, gap) => sum + Math.max(0, Math.min(gap.to, to) - Math.max(gap.from, from)), 0);
  }

  private beat(): void {
    const at = now();
    if (at - this.last > TOLERANCE) this.gaps.push({ from: this.last + PERIOD, to: at });
    this.last = at;
    while (this.gaps[0] && this.gaps[0].to < at - MEMORY) this.gaps.shift();
  }
}
