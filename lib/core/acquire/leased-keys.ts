import type { Instant } from '../clock.js';
import type { MasterReport } from '../errors.js';
import type { Master } from '../master.interface.js';
import type { QuorumCall } from './quorum-call.js';

export interface Extension {
  readonly extended: boolean;
  readonly quorumCall: QuorumCall;
}

export interface StateAccess {
  readonly masters: readonly Master[];
  readonly key: string;
  readonly entry: string;
  readonly token: string;
  // Milliseconds.
  readonly masterTimeout: number;
}

export interface LeasedKeys {
  // Milliseconds for which the keys can still be relied on; zero or less if they cannot.
  readonly remaining: number;
  // For a caller that has read the clock already.
  remainingAt(now: Instant): number;
  // Start of the round from which the validity counts.
  readonly validSince: Instant;
  // Since the last extension that succeeded; empty if none was tried since.
  readonly lastReplies: readonly MasterReport[];
  // `ttl` in milliseconds.
  extend(ttl: number): Promise<Extension>;
  // For when the clocks of this process disagree. It succeeds only if a quorum has had the keys all the time; the
  // validity then counts from this request. `ttl` in milliseconds; default: what is left by the monotonic clock.
  // `undefined` if nothing is left by that either.
  verify(ttl?: number): Promise<Extension | undefined>;
  // The wall clock was set back by so many milliseconds.
  noteSetBack(milliseconds: number): void;
  // `undefined` if there is no agreement.
  drawToken(atLeast?: number): Promise<number | undefined>;
  // Counted from 0; `undefined` for a lock.
  readonly slot: number | undefined;
  // `undefined` for several keys, shared ones and permits, which have no state.
  readonly stateAccess: StateAccess | undefined;
  // Resolves when a quorum has answered, or after the master timeout; never rejects.
  // `now`: a reading of this turn of the event loop, if there is one.
  release(keepFor: number, now?: Instant): Promise<void>;
  giveUp(): void;
}

// For how long a process has kept a lock for its own waiters.
export interface Tenure {
  readonly began: Instant;
  // With the present one.
  readonly sections: number;
}

export interface PassedLock extends Tenure {
  readonly leasedKeys: LeasedKeys;
  // Milliseconds.
  readonly ttl: number;
}
