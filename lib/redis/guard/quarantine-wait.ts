import { elapsedBetween, type Instant } from '../../core/clock.js';

/** Share by which a clock that is being corrected may run too fast. */
const SLEWED = 0.002;
/** Times of servers are in whole milliseconds. */
const ROUNDED = 2;

/** The wait until one quarantine ends, by the clock of the server and by the clock of this process. */
export class QuarantineWait {
  /** The end by the server's clock, and how far away it was at a reading. */
  private watched: { readonly from: number; readonly left: number; readonly since: Instant } | undefined;
  /** The end by the monotonic clock of this process. */
  private until: { readonly since: number; readonly length: number } | undefined;

  /** A reading at `since` shows a quarantine that ends at `from` by the server's clock, `left` milliseconds later. */
  watch(from: number, left: number, since: Instant): void {
    this.watched = { from, left, since };
  }

  /** Another marker begins: what was watched belongs to the one before. */
  forget(): void {
    this.watched = undefined;
  }

  /** Whether the end has passed by the clock of the server only: the clock was set forward while this process watched. */
  endsTooEarly(from: number, now: Instant): boolean {
    const { watched } = this;
    if (watched?.from !== from) return false;
    // Protocol 8.2
    return elapsedBetween(watched.since, now) < watched.left * (1 - SLEWED) - ROUNDED;
  }

  /** Milliseconds left at a moment, as far as this process has watched. */
  leftAt(now: Instant): number {
    return this.watched ? this.watched.left - elapsedBetween(this.watched.since, now) : 0;
  }

  /** The wait lasts at most `length` milliseconds from `since`. */
  limit(since: Instant, length: number): void {
    this.until = { since: since.monotonic, length };
  }

  /** Milliseconds until the wait ends at the latest; at least 1. */
  remainingAt({ monotonic }: Instant): number {
    const { since, length } = this.until ?? { since: monotonic, length: 0 };
    return Math.max(1, length - (monotonic - since));
  }
}
