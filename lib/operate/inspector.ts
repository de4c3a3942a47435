import type { CircuitBreakerMaster } from '../masters/circuit-breaker-master.js';
import type { Clock } from '../redlock/clock.js';
import { counted, showNames } from '../redlock/names.js';
import { duration } from '../settings/display.js';
import { majorityHolder } from '../waiting/lock-not-acquired.error.js';
import type { MasterReport } from '../redlock/errors.js';
import { holderFrom, type LockHolder, REVOKED } from '../redlock/holder.js';
import type { Keyspace } from '../settings/keyspace.js';
import { leaderFrom, type LeaderReport } from './leadership.js';
import { isLacking, timedOut } from '../redlock/server.js';
import { type MasterReply, NOT_ASKED, RESERVED } from '../masters/master.interface.js';
import { askAll } from '../masters/ask-all.js';
import { quorumOf } from '../redlock/quorum.js';
import type { LockMode } from '../settings/options.js';
import { MAX_PERMITS } from '../settings/settings.js';
import { checkPermits, resolveResources } from '../settings/resources.js';
import { TimeLimit } from '../redlock/time-limit.js';
import { readSnapshot, type StateSnapshot } from '../fencing/lock-state.js';

export interface Target {
  readonly resource: string;
  // Absent for a lock.
  readonly slot?: number | undefined;
}

// For people: `"stripe" #3` is a permit.
export function titleOf({ resource, slot }: Target): string {
  return `${showNames([resource])}${slot === undefined ? '' : ` #${slot}`}`;
}

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
  readonly masters: readonly MasterReport<MasterReply>[];
}

export function inspectionOf(resource: string, masters: readonly MasterReport<MasterReply>[]): LockInspection {
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
function sharedOn(masters: readonly MasterReport<MasterReply>[], quorum: number): number | undefined {
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
type TakenPermits = Pick<PermitInspection, 'waiting' | 'slots'>;

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

function isTaken(value: string | null | undefined): boolean {
  return typeof value === 'string' && !value.startsWith(RESERVED);
}

interface Owned {
  readonly master: string;
  // The token of the holder: a secret.
  readonly owner: string;
  // `undefined` if another library has set the key.
  readonly holder: LockHolder | undefined;
  readonly remaining: number;
}

export interface Owners {
  readonly held: readonly Owned[];
  // Revoked earlier and not expired yet.
  readonly revoked: readonly Owned[];
  // Masters that could not be asked, and why.
  readonly unasked: readonly MasterReport<MasterReply>[];
}

interface ForcedRelease {
  // No process can hold or extend the lock any more.
  readonly released: boolean;
  readonly masters: number;
  readonly taken: readonly string[];
  readonly unreached: readonly string[];
  // Milliseconds until the key expires; no process can extend it any more if `released`.
  readonly left: number;
}

interface Release {
  readonly outcome: ForcedRelease;
  // Why the holder may still have the lock there.
  readonly unreached: readonly MasterReport<MasterReply>[];
}

interface InspectorContext {
  readonly masters: readonly Pick<CircuitBreakerMaster, 'name' | 'ask' | 'problem' | 'operator'>[];
  readonly keyspace: Keyspace;
  readonly clock: Clock;
  // Milliseconds after which a master that has not answered counts as timed out.
  readonly timeout: number;
}

// Too few masters are left for a quorum that could hold or extend a lock.
export function isTakenAway(revoked: number, masters: number): boolean {
  return revoked > masters - quorumOf(masters);
}

// Needs no lock.
export class Inspector {
  constructor(private readonly context: InspectorContext) {}

  async inspect(resource: string, slot?: number): Promise<LockInspection> {
    return inspectionOf(resource, await this.look({ resource, slot }));
  }

  async inspectPermits(resource: string, permits: number): Promise<PermitInspection> {
    checkPermits([resource], permits);
    const slots = Array.from({ length: permits }, (_, slot) => slot);
    return this.inspectSlots(resource, slots);
  }

  // `undefined` if too few masters answer.
  async takenPermits(resource: string): Promise<TakenPermits | undefined> {
    const found = await this.findSlots(resource);
    if (!found) return undefined;
    const { waiting, slots } = await this.inspectSlots(resource, found);
    return { waiting, slots: slots.filter(({ state }) => state !== 'free') };
  }

  // Works without the number of permits, which only applications know. One request for each master looks at every slot
  // that there can be, where a SCAN would go through all keys. Of a name that is longer than any usual one, it looks at
  // the first slots only. `undefined` if too few masters answer.
  async findSlots(resource: string): Promise<readonly number[] | undefined> {
    const { masters, keyspace } = this.context;
    const longest = keyspace.slotOf(resource, MAX_PERMITS).length;
    const count = Math.max(1, Math.min(MAX_PERMITS, Math.floor(MAX_CHARACTERS / longest)));
    const keys = Array.from({ length: count }, (_, slot) => keyspace.slotOf(resource, slot));
    const answers = await Promise.all(
      masters.map(async ({ operator }) => (operator ? inTime(operator.values(keys), this.context) : NOT_ASKED)),
    );
    const found = answers.flatMap((answer) => ('kind' in answer ? [] : [answer]));
    if (found.length < quorumOf(masters.length)) return undefined;
    return keys.flatMap((_, slot) => (found.some((values) => isTaken(values[slot])) ? [slot] : []));
  }

  readState(resource: string): Promise<StateSnapshot> {
    const { keyspace } = this.context;
    const [key, entry] = [keyspace.keyOf(resource), keyspace.stateOf(resource)];
    return readSnapshot({ ...this.context, resource, key, entry });
  }

  // Its term is unknown while it is not stored.
  async leader(resource: string, holder: LockHolder): Promise<LeaderReport> {
    const { value } = await this.readState(resource);
    return leaderFrom(holder, value);
  }

  async owners(target: Target): Promise<Owners> {
    const { masters } = this.context;
    resolveResources('resource', target.resource);
    const key = this.keyOf(target);
    const answers = await Promise.all(
      masters.map(async (one) =>
        one.operator ? inTime(one.operator.read(key), this.context) : (one.problem() ?? NOT_ASKED),
      ),
    );
    const kept: Owned[] = [];
    const unasked: MasterReport<MasterReply>[] = [];
    for (const [index, answer] of answers.entries()) {
      const master = masters[index]?.name ?? '';
      if (answer && 'kind' in answer) unasked.push({ master, answer });
      else if (answer && !answer.value.startsWith(RESERVED)) {
        kept.push({ master, owner: answer.value, holder: holderFrom(answer.value), remaining: answer.remaining });
      }
    }
    const isRevoked = ({ owner }: Owned): boolean => owner === REVOKED;
    return { held: kept.filter((one) => !isRevoked(one)), revoked: kept.filter(isRevoked), unasked };
  }

  isRevoked({ held, revoked, unasked }: Owners): boolean {
    if (revoked.length === 0) return false;
    return isTakenAway(revoked.length, this.context.masters.length) || held.length + unasked.length === 0;
  }

  // Its holder learns of it with its next extension, and its time passes first. The lock of a later holder is left alone,
  // unless it has taken over within the process of the one that was found.
  // Protocol 7.5
  revoke(target: Target, owners: Owners): Promise<Release> {
    const key = this.keyOf(target);
    return this.takeAway(owners, async ({ master, owner }) => {
      const operator = this.context.masters.find(({ name }) => name === master)?.operator;
      return operator ? inTime(operator.revoke(key, owner), this.context) : NOT_ASKED;
    });
  }

  // As the holder that was found would, so that the next waiter is notified.
  free(target: Target, owners: Owners): Promise<Release> {
    const { keys, queues } = this.context.keyspace.namesOfTarget(target);
    return this.takeAway(owners, async ({ master, owner: token, remaining }) => {
      const masters = this.context.masters.filter(({ name }) => name === master);
      const request = { op: 'release', keys, queues, token, keepFor: 0, ttl: Math.max(0, remaining) } as const;
      const [report] = await askAll({ ...this.context, masters, request });
      const answer = report?.answer ?? NOT_ASKED;
      // The holder that was found may have lost the key meanwhile.
      return answer.kind === 'granted' || isLacking(answer) ? 0 : answer;
    });
  }

  // `take` resolves with the milliseconds until the key expires, or with the reason why the holder may still have it.
  private async takeAway(
    { held, revoked, unasked }: Owners,
    take: (from: Owned) => Promise<number | MasterReply>,
  ): Promise<Release> {
    const takings = await Promise.all(held.map(async (one) => ({ master: one.master, left: await take(one) })));
    const taken = takings.filter(({ left }) => typeof left === 'number');
    const kept = takings.flatMap(({ master, left }) => (typeof left === 'number' ? [] : [{ master, answer: left }]));
    const unreached = [...unasked, ...kept];
    const outcome = {
      released: isTakenAway(taken.length + revoked.length, this.context.masters.length) || unreached.length === 0,
      masters: this.context.masters.length,
      taken: taken.map(({ master }) => master),
      unreached: unreached.map(({ master }) => master),
      left: Math.max(0, ...taken.map(({ left }) => Number(left)), ...revoked.map(({ remaining }) => remaining)),
    };
    return { outcome, unreached };
  }

  // On a master.
  keyOf(target: Target): string {
    return this.context.keyspace.namesOfTarget(target).keys[0] ?? '';
  }

  private async inspectSlots(resource: string, slots: readonly number[]): Promise<PermitInspection> {
    const reports = slots.map(async (slot) => ({ slot, masters: await this.look({ resource, slot }) }));
    return summarizePermits(resource, await Promise.all(reports));
  }

  private look(target: Target): Promise<readonly MasterReport<MasterReply>[]> {
    const { keys, queues } = this.context.keyspace.namesOfTarget(target);
    return askAll({ ...this.context, request: { op: 'inspect', keys, queues } });
  }
}

export function inTime<T>(
  answer: Promise<T>,
  { clock, timeout }: Pick<InspectorContext, 'clock' | 'timeout'>,
): Promise<T | MasterReply> {
  return new Promise((resolve) => {
    const limit = new TimeLimit({ clock, limit: timeout, end: () => resolve(timedOut(limit.blocked)) });
    void answer.then((value) => {
      limit.cancel();
      resolve(value);
    });
  });
}

export interface AuditRecord extends ForcedRelease, Target {
  // ISO 8601, UTC.
  readonly at: string;
  readonly by: string;
  readonly mode: 'revoked' | 'at-once';
}

// One line, whatever characters the names contain.
export function auditLine(record: AuditRecord): string {
  const { at, by, mode, released, masters, taken, unreached, left } = record;
  const where = `${taken.length} of ${counted(masters, 'master')} (${taken.join(', ') || 'none'})`;
  const others = unreached.length > 0 ? `, not on ${unreached.join(', ')}` : '';
  const verb = released ? 'released' : 'failed to release';
  return `audit: ${at} ${showNames([by])} ${verb} ${titleOf(record)} (${mode}, ${duration(left)} left) on ${where}${others}`;
}

/** A lock or permit that this process holds, as `LockService.held` gives it. */
export interface HeldLock {
  /** The locked resources. */
  readonly resources: readonly string[];
  /** `'shared'` for a shared lock, otherwise `'exclusive'`. */
  readonly mode: LockMode;
  /** The slot of a permit, from 0; `undefined` for a lock. */
  readonly slot: number | undefined;
  /** When it was acquired, by the clock of this process. */
  readonly since: Date;
  /** Milliseconds for which it can be relied on if it is not extended. */
  readonly remaining: number;
  /** The decorator or interceptor with its class and method; `undefined` for calls of `LockService`. */
  readonly caller: string | undefined;
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
