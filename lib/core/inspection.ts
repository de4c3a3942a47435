import type { MasterReport } from './errors.js';
import { quorumOf } from './quorum.js';

/** What the masters say about a resource. Advisory: it may have changed by the time it is read. */
export interface Inspection {
  /** What was asked about. */
  readonly resource: string;
  /** `unknown` when too few masters answered to tell. */
  readonly state: 'held' | 'free' | 'unknown';
  /** Milliseconds after which it is free unless its holder extends; `undefined` when unknown. */
  readonly remaining: number | undefined;
  /** What each master said; `granted` means free. */
  readonly masters: readonly MasterReport[];
}

/** What the answers of all masters amount to. */
export function summarize(resource: string, masters: readonly MasterReport[]): Inspection {
  const quorum = quorumOf(masters.length);
  const times = masters.flatMap(({ answer }) => {
    if (answer?.kind === 'granted') return [0];
    return answer?.kind === 'held' ? [answer.remaining ?? Infinity] : [];
  });
  const heldBy = times.filter((time) => time > 0).length;
  // So many free masters leave too few for anybody to hold a quorum.
  if (times.length - heldBy > masters.length - quorum) return { resource, state: 'free', remaining: 0, masters };
  if (heldBy < quorum) return { resource, state: 'unknown', remaining: undefined, masters };
  const remaining = times.sort((a, b) => a - b)[quorum - 1];
  return { resource, state: 'held', remaining: remaining === Infinity ? undefined : remaining, masters };
}
