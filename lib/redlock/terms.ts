import type { Clock } from './clock.js';
import type { LockLostError, MasterReport } from './errors.js';
import type { Random } from './holder.js';

// What was asked for, and what follows from the end.
export interface Terms<L> {
  readonly resources: readonly string[];
  readonly call: CallTerms;
  // Called once, when the lock is released or lost.
  ended(lease: L): void;
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
