import type { Instant } from '../clock.js';
import type { PassedLock } from './local-hand-off.js';
import type { Refusal } from './refusal.js';
import type { PlacesOnMasters } from './places-on-masters.js';
import type { Waiter } from './waiter.js';

/** One acquisition in the queues of its resources in this process, and then the lock that it has acquired. */
export interface QueueEntry {
  /** Whether its turn has come in all its queues. */
  readonly isAdmitted: boolean;
  /** Whether it is the first one of all its queues that may contend. */
  readonly isNext: boolean;
  /** The last refusal of an acquisition whose turn had come in these queues; `undefined` once one is granted. */
  refusal: Refusal | undefined;
  /** The masters have refused an attempt: those that come later do not contend until it is granted or given up. */
  noteRefusal(): void;
  /** The lock is granted. The entry keeps its places until it leaves. */
  becomeHolder(): void;
  /** The lock has ended before it was used: the entry waits again, in its places. */
  waitAgain(waiter: Waiter): void;
  /** The holder offers its lock to the next one in its only queue. Returns whether that takes it. */
  passOn(lock: PassedLock): boolean;
  /**
   * A waiter that gives up offers its places on the masters to the next one of its only queue that can take them, in front
   * of the first shared one. Returns whether one does.
   */
  passPlaces(places: PlacesOnMasters): boolean;
  /** The holder releases its lock after several sections of this process in a row: now it is the turn of others. */
  noteServed(now: Instant): void;
  /** Milliseconds since the last turn of this process that had several sections; `Infinity` if there was none. */
  sinceServed(now: Instant): number;
  /** Leaves all queues. Idempotent. */
  leave(): void;
}
