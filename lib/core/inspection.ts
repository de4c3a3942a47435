import type { MasterReport } from './errors.js';
import { quorumOf } from './acquire/quorum-call.js';

/** The state of a resource as the masters report it. Advisory: it may have changed by the time it is read. */
export interface LockInspection {
  /** The inspected resource. */
  readonly resource: string;
  /** The state, or `unknown` if the answers of the masters are not sufficient to determine it. */
  readonly state: 'held' | 'free' | 'unknown';
  /** Milliseconds after which the resource is free unless its holder extends the lock; `undefined` if unknown. */
  readonly remaining: number | undefined;
  /** The answer of each master; `granted` means free. */
  readonly masters: readonly MasterReport[];
}

/** Derives the state of a resource from the answers of all masters. */
export function summarize(resource: string, masters: readonly MasterReport[]): LockInspection {
  const quorum = quorumOf(masters.length);
  const times = masters.flatMap(({ answer }) => {
    if (answer?.kind === 'granted') return [0];
    return answer?.kind === 'held' ? [answer.remaining ?? Infinity] : [];
  });
  const heldBy = times.filter((time) => time > 0).length;
  // This many free masters leave too few for any holder to have a quorum.
  if (times.length - heldBy > masters.length - quorum) return { resource, state: 'free', remaining: 0, masters };
  if (heldBy < quorum) return { resource, state: 'unknown', remaining: undefined, masters };
  const remaining = times.sort((a, b) => a - b)[quorum - 1];
  return { resource, state: 'held', remaining: remaining === Infinity ? undefined : remaining, masters };
}
