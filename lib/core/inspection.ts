import { holderIn, type MasterReport } from './errors.js';
import type { LockHolder } from './holder.js';
import { quorumOf } from './acquire/quorum-call.js';

/** The state of a resource as the masters report it. Advisory: it may have changed by the time it is read. */
export interface LockInspection {
  /** The inspected resource. */
  readonly resource: string;
  /** The state, or `unknown` if the answers of the masters are not sufficient to determine it. */
  readonly state: 'held' | 'free' | 'unknown';
  /** Milliseconds after which the resource is free unless its holder extends the lock; `undefined` if unknown. */
  readonly remaining: number | undefined;
  /** The holder; `undefined` if it is not held, or if another library set the key. */
  readonly holder: LockHolder | undefined;
  /** Number of shared holders; `undefined` unless the lock is shared. */
  readonly sharedBy: number | undefined;
  /** Number of processes that wait for it in line. Processes that only poll are not counted. */
  readonly waiting: number;
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
  const waiting = Math.max(0, ...masters.map(({ answer }) => (answer?.kind === 'held' ? (answer.waiting ?? 0) : 0)));
  const known = { resource, waiting, masters, holder: undefined, remaining: undefined, sharedBy: undefined };
  // This many free masters leave too few for any holder to have a quorum.
  if (times.length - heldBy > masters.length - quorum) return { ...known, state: 'free', remaining: 0 };
  if (heldBy < quorum) return { ...known, state: 'unknown' };
  const remaining = times.sort((a, b) => a - b)[quorum - 1];
  const holder = holderIn(masters);
  return {
    ...{ ...known, state: 'held', holder, remaining: remaining === Infinity ? undefined : remaining },
    sharedBy: sharedOn(masters, quorum),
  };
}

/** The number of shared holders that a quorum has; `undefined` for none. */
function sharedOn(masters: readonly MasterReport[], quorum: number): number | undefined {
  const counts = masters.map(({ answer }) => (answer?.kind === 'held' ? answer.sharedBy : undefined));
  const shared = counts.map((count) => count ?? 0).sort((a, b) => b - a)[quorum - 1] ?? 0;
  return shared > 0 ? shared : undefined;
}

/** One permit as the masters report it. */
export interface SlotInspection extends Pick<LockInspection, 'state' | 'remaining' | 'holder' | 'masters'> {
  /** From 0 to one less than the number of permits. */
  readonly slot: number;
}

/** The permits of a resource as the masters report them. Advisory: they may have changed by the time they are read. */
export interface PermitInspection {
  /** The inspected resource. */
  readonly resource: string;
  /** Number of permits that were looked at. */
  readonly permits: number;
  /** Number of them that are held. Those whose state is unknown are not counted. */
  readonly taken: number;
  /** Number of processes that wait for any of them in line. Processes that only poll are not counted. */
  readonly waiting: number;
  /** Each permit, in the order of their slots. */
  readonly slots: readonly SlotInspection[];
}

/** The permits of a resource that are held, however many there are. */
export type TakenPermits = Pick<PermitInspection, 'waiting' | 'slots'>;

/** @param reports for each permit that was looked at, the answers of all masters */
export function summarizePermits(
  resource: string,
  reports: readonly Pick<SlotInspection, 'slot' | 'masters'>[],
): PermitInspection {
  const all = reports.map(({ slot, masters }) => ({ slot, ...summarize(resource, masters) }));
  return {
    ...{ resource, permits: all.length },
    taken: all.filter(({ state }) => state === 'held').length,
    // All permits have one queue.
    waiting: Math.max(0, ...all.map(({ waiting }) => waiting)),
    slots: all.map(({ slot, state, remaining, holder, masters }) => ({ slot, state, remaining, holder, masters })),
  };
}
