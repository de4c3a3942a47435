import type { Random } from '../random.js';

/** Notifications can be lost, so a waiter also polls, for the first time after at most this many milliseconds. */
const FIRST_POLL = 750;
/** Polls become rarer, up to this many milliseconds: an entry in a queue lasts only 5 s and must be renewed before. */
const RAREST_POLL = 4_000;
/** A poll comes after at least this share of its bound. */
const LEAST = 1 / 3;
/** Every poll asks the home master. A quorum may disagree with it, so one poll in this many asks all masters. */
const ALL_MASTERS_EVERY = 8;
/**
 * After a split vote or a failure, a retry comes at a random moment within a bound: this many milliseconds, doubled for
 * each failure in a row.
 */
const RETRY_WITHIN = 20;

/** When a waiter polls, and which masters. Random, so that waiters that began together do not poll together. */
export class RetrySchedule {
  /** Consecutive attempts whose answer from the home master was useless: there was none, or other masters disagreed. */
  private failures = 0;
  /** Consecutive polls without a notification in between. */
  private quiet = 0;

  constructor(private readonly random: Random) {}

  /** Whether the last attempts gave no useful answer of the home master. */
  get isFailing(): boolean {
    return this.failures > 0;
  }

  noteFailure(): void {
    this.failures++;
  }

  noteRefusal(): void {
    this.failures = 0;
  }

  /** The waiter was notified. */
  noteNotification(): void {
    this.quiet = 0;
  }

  noteQuiet(): void {
    this.quiet++;
  }

  /**
   * Milliseconds until the next poll.
   *
   * @param called whether notifications are known to arrive; otherwise polls stay frequent
   */
  delay(called: boolean): number {
    const chance = this.random.fraction();
    // Protocol 5.6
    // Back off before the next attempt: a home master that fails may do so at once, again and again.
    if (this.failures > 0) return Math.max(1, chance * Math.min(FIRST_POLL, RETRY_WITHIN * 2 ** this.failures));
    // Protocol 5.5
    const most = called ? Math.min(RAREST_POLL, FIRST_POLL * 2 ** this.quiet) : FIRST_POLL;
    return most * (LEAST + chance * (1 - LEAST));
  }

  /** Whether the next poll asks all masters. */
  isWide(called: boolean): boolean {
    // Protocol 5.5
    return !called || this.quiet % ALL_MASTERS_EVERY === 0;
  }
}
