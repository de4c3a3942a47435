import { majorityHolder, type MasterReport } from '../errors.js';
import type { LockHolder } from '../holder.js';
import { askAll, quorumOf } from '../acquire/quorum-call.js';
import {
  findOwners,
  freeOwners,
  inTime,
  type OperatorContext,
  type Owners,
  type Release,
  revokeOwners,
  type Target,
} from './forced-release.js';
import type { Keyspace } from '../keyspace.js';
import { NOT_ASKED, RESERVED } from '../master.interface.js';
import { MAX_PERMITS } from '../settings/settings.js';
import type { Clock } from '../clock.js';
import type { CircuitBreakerMaster } from '../health/circuit-breaker-master.js';
import { readSnapshot, type StateSnapshot } from '../state/state-register.js';

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

export function inspectionOf(resource: string, masters: readonly MasterReport[]): LockInspection {
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
  const holder = majorityHolder(masters);
  return {
    ...{ ...known, state: 'held', holder, remaining: remaining === Infinity ? undefined : remaining },
    sharedBy: sharedOn(masters, quorum),
  };
}

// The number that a quorum has; `undefined` for none.
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

// Only those that are held, however many there are.
export type TakenPermits = Pick<PermitInspection, 'waiting' | 'slots'>;

// `reports`: for each permit that was looked at, the answers of all masters.
function summarizePermits(
  resource: string,
  reports: readonly Pick<SlotInspection, 'slot' | 'masters'>[],
): PermitInspection {
  const all = reports.map(({ slot, masters }) => ({ slot, ...inspectionOf(resource, masters) }));
  return {
    ...{ resource, permits: all.length },
    taken: all.filter(({ state }) => state === 'held').length,
    // All permits have one queue.
    waiting: Math.max(0, ...all.map(({ waiting }) => waiting)),
    slots: all.map(({ slot, state, remaining, holder, masters }) => ({ slot, state, remaining, holder, masters })),
  };
}

// Of all keys of one look-up, in UTF-16 code units: that of all slots of a name with 240 characters.
const MAX_CHARACTERS = 2 ** 18;

export interface SlotSearch extends Omit<OperatorContext, 'key'> {
  readonly keyspace: Keyspace;
  readonly resource: string;
}

// Works without the number of permits, which only applications know. One request for each master looks at every slot
// that there can be, where a SCAN would go through all keys. Of a name that is longer than any usual one, it looks at
// the first slots only. `undefined` if too few masters answer.
export async function findSlots({ keyspace, resource, ...search }: SlotSearch): Promise<readonly number[] | undefined> {
  const longest = keyspace.slotOf(resource, MAX_PERMITS).length;
  const count = Math.max(1, Math.min(MAX_PERMITS, Math.floor(MAX_CHARACTERS / longest)));
  const keys = Array.from({ length: count }, (_, slot) => keyspace.slotOf(resource, slot));
  const answers = await Promise.all(
    search.masters.map(async ({ operator }) => (operator ? inTime(operator.values(keys), search) : NOT_ASKED)),
  );
  const found = answers.flatMap((answer) => ('kind' in answer ? [] : [answer]));
  if (found.length < quorumOf(search.masters.length)) return undefined;
  return keys.flatMap((_, slot) => (found.some((values) => isTaken(values[slot])) ? [slot] : []));
}

function isTaken(value: string | null | undefined): boolean {
  return typeof value === 'string' && !value.startsWith(RESERVED);
}

interface InspectorContext {
  readonly masters: readonly CircuitBreakerMaster[];
  readonly keyspace: Keyspace;
  readonly clock: Clock;
  // Milliseconds.
  readonly timeout: number;
}

// Needs no lock.
export class Inspector {
  constructor(private readonly context: InspectorContext) {}

  async inspect(resource: string, slot?: number): Promise<LockInspection> {
    return inspectionOf(resource, await this.look({ resource, slot }));
  }

  inspectPermits(resource: string, permits: number): Promise<PermitInspection> {
    const slots = Array.from({ length: permits }, (_, slot) => slot);
    return this.inspectSlots(resource, slots);
  }

  // `undefined` if too few masters answer.
  async takenPermits(resource: string): Promise<TakenPermits | undefined> {
    const found = await findSlots({ ...this.context, resource });
    if (!found) return undefined;
    const { waiting, slots } = await this.inspectSlots(resource, found);
    return { waiting, slots: slots.filter(({ state }) => state !== 'free') };
  }

  readState(resource: string): Promise<StateSnapshot> {
    const { keyspace } = this.context;
    const [key, entry] = [keyspace.keyOf(resource), keyspace.stateOf(resource)];
    return readSnapshot({ ...this.context, resource, key, entry });
  }

  owners(target: Target): Promise<Owners> {
    return findOwners(this.operatorContext(target));
  }

  // Its holder learns of it with its next extension, and its time passes first.
  revoke(target: Target, owners: Owners): Promise<Release> {
    return revokeOwners(owners, this.operatorContext(target));
  }

  free(target: Target, owners: Owners): Promise<Release> {
    return freeOwners(owners, { ...this.context, names: this.context.keyspace.namesOfTarget(target) });
  }

  private operatorContext(target: Target): OperatorContext {
    const [key = ''] = this.context.keyspace.namesOfTarget(target).keys;
    return { ...this.context, key };
  }

  private async inspectSlots(resource: string, slots: readonly number[]): Promise<PermitInspection> {
    const reports = slots.map(async (slot) => ({ slot, masters: await this.look({ resource, slot }) }));
    return summarizePermits(resource, await Promise.all(reports));
  }

  private look(target: Target): Promise<readonly MasterReport[]> {
    const { keys, queues } = this.context.keyspace.namesOfTarget(target);
    return askAll({ ...this.context, request: { op: 'inspect', keys, queues } });
  }
}

interface OwnLock {
  readonly resources: readonly string[];
  // When it was acquired, or when the wait began, in milliseconds since the Unix epoch.
  readonly since: number;
  // Absent for an exclusive lock and for a permit.
  readonly mode?: 'shared';
  // Absent for a lock, and while a permit is waited for.
  readonly slot?: number;
  // Of which one is waited for; absent for a lock, and for what is held.
  readonly permits?: number;
}

// The oldest first.
export interface OwnLocks {
  // Of all, also those that are not in `locks`.
  readonly count: number;
  readonly locks: readonly OwnLock[];
}

export function firstLocks<T>(all: readonly T[], limit: number, format: (one: T) => OwnLock): OwnLocks {
  return { count: all.length, locks: all.slice(0, limit).map(format) };
}
