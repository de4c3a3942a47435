import type { Instant } from './clock.js';
import type { Lease } from './lease.js';
import type { CallTerms, Terms } from './terms.js';
import { ListMember } from './linked-list.js';
import type { Mutex } from './mutex.js';
import type { Waiting } from './waiting.js';

// One call for a lock, until its work begins or it has failed.
export abstract class Call extends ListMember<Call> {
  abstract readonly resources: readonly string[];
  abstract readonly terms: CallTerms;
  // When it began.
  abstract readonly since: Instant;
  // How it waits. Asked again if a lock ended before its work could begin.
  abstract begin(isRepeated: boolean): Waiting;
  // The lock is held. Its work has not begun.
  abstract granted(mutex: Mutex): Terms<Lease>;
  // Work is about to begin, unless the lock has ended.
  abstract beginning(lease: Lease): void;
  // The lock had ended, and is acquired anew.
  abstract unused(): void;
  // Returns the error for the caller.
  abstract failed(reason: unknown): unknown;
  abstract end(): void;
  abstract readonly cancellation: Cancellation;
}

// The caller gives up, or the process stops.
export interface Cancellation {
  readonly isStopped: boolean;
  stop(reason: unknown): void;
  // Throws the reason if it is stopped.
  check(): void;
  // What is given up then.
  set interrupt(work: { giveUp(): void } | undefined);
}
