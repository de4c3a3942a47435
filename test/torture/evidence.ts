import type { PlannedPhase } from './plan.js';
import type { Write } from './register.js';
import type { TraceEvent } from './trace.js';

/** A fault as it was carried out. Times are milliseconds of the machine's monotonic clock. */
export interface AppliedFault {
  readonly kind: string;
  readonly targets: readonly number[];
  readonly at: number;
  readonly until: number;
}

/** A phase as it took place. */
export interface Phase extends Omit<PlannedPhase, 'name'> {
  readonly name: PlannedPhase['name'] | 'start' | 'end';
}

/** One worker process, from its start to its end. */
export interface WorkerRecord {
  readonly name: string;
  readonly events: readonly TraceEvent[];
  /** When the nemesis killed it. */
  readonly killedAt?: number | undefined;
  /** Exit code, or the signal that ended it. */
  readonly exit: number | string;
}

/** A key that still existed when every lock had to have ended. */
export interface GhostKey {
  readonly master: number;
  readonly key: string;
  /** Milliseconds until it expires; -1: never. */
  readonly ttl: number;
}

/** Everything that a run leaves behind for the checks. */
export interface Evidence {
  /** Names of all kinds of faults that the run could have had. */
  readonly kinds: readonly string[];
  readonly keys: readonly string[];
  readonly phases: readonly Phase[];
  readonly faults: readonly AppliedFault[];
  readonly workers: readonly WorkerRecord[];
  readonly writes: readonly Write[];
  readonly ghosts: readonly GhostKey[];
}

/** An event that must not have happened. */
export interface Violation {
  readonly at: number;
  readonly message: string;
}
