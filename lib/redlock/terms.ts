import type { Clock } from './clock.js';
import type { LockLostError, MasterReport } from './errors.js';
import type { Random } from './holder.js';
import type { Mutex } from './mutex.js';
import type { QuorumCall } from './quorum.js';
import type { Extension, TellLoss } from './round.js';

// What was asked for, and what follows from the end.
export interface Terms<L> {
  readonly resources: readonly string[];
  readonly call: CallTerms;
  // To whom a lock of this ttl can be passed on instead of its release.
  successorFor(ttl: number): Successor | undefined;
  // Called once, when the lock is released or lost.
  ended(lease: L): void;
}

// A lock whose holder has passed it on: its keys, and the extension that is under way.
export interface PassedLock {
  readonly mutex: Mutex;
  readonly extension: Promise<Extension>;
  // Tells the holder before.
  readonly tellLoss: TellLoss;
  // Of the extension.
  outcome?: QuorumCall;
  // Its release, if that came before the outcome.
  ending?: Promise<void>;
}

// Waits for the same lock.
export interface Successor {
  take(passed: PassedLock): void;
}

// Durations are in milliseconds.
export interface CallTerms {
  readonly ttl: number;
  readonly extend: boolean;
  readonly minHold: number;
  readonly maxHold: number;
  // The work may go on after a shutdown, so that its keys are not released then, but expire.
  readonly outlivesShutdown?: boolean;
}

export interface LeaseContext<L> {
  // Makes the signals of locks.
  readonly controller: () => AbortController;
  readonly clock: Clock;
  readonly random: Pick<Random, 'fraction'>;
  readonly masters: number;
  // Resolves when lost connections, without which there is no quorum, are open again; `undefined` if none is awaited.
  readonly reopened: () => Promise<void> | undefined;
  // Called once, when the lock is released or lost.
  readonly ended: (lease: L) => void;
  // Of a lock on which its holder still relied.
  readonly lost: (loss: LockLostError) => void;
  // An extension has failed.
  readonly inDanger: (resources: readonly string[], remaining: number, replies: readonly MasterReport[]) => void;
}
