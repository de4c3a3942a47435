import type { Instant } from './clock.js';

// Reports the locks of this process when a master comes back without its data. As long as a holder is reported, that
// master does not vote until every earlier lock has ended.
export interface Witness {
  // `undefined` if the attempt does not count. One that too few masters can grant does not, so that a process that
  // waits for new masters does not keep them from voting. It must not succeed, either: a master that becomes able to
  // grant a moment later may have lost what another one granted to the same attempt.
  beginAttempt(): number | undefined;
  // A quorum has granted. False if too few masters could vote in the meantime; otherwise, the lock is reported until
  // `disengage`.
  confirm(attempt: number): boolean;
  abandon(attempt: number): void;
  // `keptFor`: milliseconds for which the keys of the lock stay taken; default: 0.
  disengage(keptFor?: number): void;
  // In milliseconds, so that each master stays out long enough after a loss of data. `now`: a reading of the clock in
  // this turn. Returns the ttl that may be used: less if a master that must know it cannot be reached.
  announceTtl(ttl: number, now?: Instant): number | Promise<number>;
}

// Without a restart guard, every attempt counts, and every ttl may be used.
export const NO_WITNESS: Witness = Object.freeze({
  beginAttempt: () => 0,
  confirm: () => true,
  abandon: () => undefined,
  disengage: () => undefined,
  announceTtl: (ttl: number) => ttl,
});
