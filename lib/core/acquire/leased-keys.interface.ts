import type { Instant } from '../clock.js';
import type { MasterReport } from '../errors.js';
import type { Master } from '../master.interface.js';
import type { QuorumCall } from './quorum-call.js';

/** The result of an extension. */
export interface Extension {
  readonly extended: boolean;
  readonly quorumCall: QuorumCall;
}

/** What the state of a lock needs to know about its keys. */
export interface StateAccess {
  readonly masters: readonly Master[];
  /** The key of the lock. */
  readonly key: string;
  /** The name of the entry. */
  readonly entry: string;
  readonly token: string;
  /** Milliseconds. */
  readonly masterTimeout: number;
}

/** The keys of a lock on the masters, and how long they can be relied on. */
export interface LeasedKeys {
  /** Milliseconds for which the keys can still be relied on; zero or less if they cannot. */
  readonly remaining: number;
  /** Like {@link remaining}, at a clock reading that the caller already has. */
  remainingAt(now: Instant): number;
  /** Start of the round from which the validity counts. */
  readonly validSince: Instant;
  /** What each master replied last to an extension, since the last one that succeeded; empty if none was tried since. */
  readonly lastReplies: readonly MasterReport[];
  /** Tries to renew the keys for `ttl` milliseconds. */
  extend(ttl: number): Promise<Extension>;
  /**
   * Asks the masters whether they still have the keys, because the clocks of this process disagree. It succeeds only if a
   * quorum has had them all the time; the validity then counts from this request.
   *
   * @param ttl milliseconds for which the keys are renewed; default: what is left by the monotonic clock
   * @returns `undefined` if nothing is left by the monotonic clock either
   */
  verify(ttl?: number): Promise<Extension | undefined>;
  /** The wall clock was set back by this many milliseconds. */
  noteSetBack(milliseconds: number): void;
  /** Agrees on a fencing token of at least `atLeast`. Resolves with `undefined` if there is no agreement. */
  drawToken(atLeast?: number): Promise<number | undefined>;
  /** The number of the permit, counted from 0; `undefined` for a lock. */
  readonly slot: number | undefined;
  /** `undefined` for several keys, shared ones and permits, which have no state. */
  readonly stateAccess: StateAccess | undefined;
  /** Releases the keys. Resolves when a quorum has answered, or after the master timeout; never rejects. */
  release(keepFor: number): Promise<void>;
  /** Ends the current round. */
  giveUp(): void;
}
