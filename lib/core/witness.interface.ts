/**
 * Speaks for the locks of this process when a master comes back without its data: as long as a holder speaks, that master
 * stays out until every lock from before has ended.
 */
export interface Witness {
  /**
   * One more attempt is under way. Returns whether it counts: an attempt that too few masters can grant does not, so that
   * a process that waits for new masters does not keep them from voting. Such an attempt must not succeed, either: a
   * master that can grant a moment later may be one that has lost what another one granted to the same attempt.
   */
  beginAttempt(): boolean;
  /** An attempt that counted has failed, or the lock that came of it has ended. */
  disengage(): void;
  /**
   * Announces a ttl to the masters, so that each of them stays out for long enough after a loss of data.
   *
   * @param ttl milliseconds
   * @returns the ttl that may be used: less where not all masters that have to know it can be reached
   */
  permit(ttl: number): number | Promise<number>;
}

/** For masters that cannot lose their data without this process. */
export const NO_WITNESS: Witness = Object.freeze({
  beginAttempt: () => true,
  disengage: () => undefined,
  permit: (ttl: number) => ttl,
});
