import type { Instant } from './clock.js';

/**
 * Reports the locks of this process when a master comes back without its data. As long as a holder is reported, that
 * master does not vote until every earlier lock has ended.
 */
export interface Witness {
  /**
   * Registers one more attempt. Returns a number that identifies it, or `undefined` if it does not count: an attempt
   * that too few masters can grant does not, so that a process that waits for new masters does not keep them from
   * voting. Such an attempt must not succeed, either: a master that becomes able to grant a moment later may have lost
   * what another one granted to the same attempt.
   */
  beginAttempt(): number | undefined;
  /**
   * A quorum has granted an attempt. Returns whether it counts: not if too few masters could vote in the meantime. If it
   * does, the lock is reported until `disengage`.
   */
  confirm(attempt: number): boolean;
  /** An attempt has failed. */
  abandon(attempt: number): void;
  /**
   * A lock has ended.
   *
   * @param keptFor milliseconds for which its keys stay taken; default: 0
   */
  disengage(keptFor?: number): void;
  /**
   * Announces a ttl to the masters, so that each of them stays out long enough after a loss of data.
   *
   * @param ttl milliseconds
   * @param now a reading of the clock in this turn; default: a new one
   * @returns the ttl that may be used: less than `ttl` if a master that must know it cannot be reached
   */
  announceTtl(ttl: number, now?: Instant): number | Promise<number>;
}

/** The witness without a restart guard: every attempt counts, and every ttl may be used. */
export const NO_WITNESS: Witness = Object.freeze({
  beginAttempt: () => 0,
  confirm: () => true,
  abandon: () => undefined,
  disengage: () => undefined,
  announceTtl: (ttl: number) => ttl,
});
