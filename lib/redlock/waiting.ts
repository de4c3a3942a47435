import type { LockError } from './errors.js';
import type { Plan } from './round.js';
import type { QuorumCall } from './quorum.js';
import type { PassedLock } from './terms.js';

// When a call asks the masters, and how: the one seam for everything that knows of other calls for the same resources.
export interface Waiting {
  // Resolves when it is its turn: with a lock if it need not ask, with `undefined` if it may not ask any more, because its
  // time is over.
  plan(attempt: number): Plan | Promise<Plan | PassedLock | undefined>;
  // Has the outcome of an attempt before anything else happens.
  note(quorumCall: QuorumCall, isTaken: boolean): void;
  // Resolves when another attempt is worth it, or the time is over.
  pause(quorumCall: QuorumCall): Promise<void>;
  // Why nothing was granted, once the time is over.
  failure(): Promise<LockError>;
  // No attempt follows.
  end(): void;
}
