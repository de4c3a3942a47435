import { elapsedBetween, type Instant } from '../clock.js';
import type { LeasedKeys } from './leased-keys.interface.js';

/** A process keeps a lock for its own waiters for this many sections in a row at most. */
const MOST_SECTIONS = 5;
/** It passes a lock on no later than this many milliseconds after it has acquired it: other processes wait, too. */
const LONGEST_TENURE = 10;
/** The next holder has at least this share of the ttl left. */
const SHARE_LEFT = 0.8;

/** For how long a process has kept a lock for its own waiters. */
export interface Tenure {
  /** When the process acquired the lock. */
  readonly began: Instant;
  /** Number of sections so far, with the present one. */
  readonly sections: number;
}

/** A lock that its holder passes to the next waiter of the same process. */
export interface PassedLock extends Tenure {
  readonly leasedKeys: LeasedKeys;
  /** Milliseconds. */
  readonly ttl: number;
}

/**
 * Whether a holder may pass its lock to the next waiter of its process, which needs no round trip, or has to release it, so
 * that other processes get their turn.
 * Protocol 5.2.
 *
 * @see https://dl.acm.org/doi/10.1145/2145816.2145848 "Lock Cohorting", Dice, Marathe and Shavit, for the same bound
 *   between the cores of one machine
 */
export function mayPassOn({ leasedKeys, ttl, began, sections }: PassedLock, now: Instant): boolean {
  if (sections >= MOST_SECTIONS) return false;
  return elapsedBetween(began, now) < LONGEST_TENURE && leasedKeys.remainingAt(now) >= ttl * SHARE_LEFT;
}
