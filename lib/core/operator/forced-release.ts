import { counted, duration, showNames } from '../display.js';
import type { Clock } from '../clock.js';
import type { MasterReport } from '../errors.js';
import {
  type Master,
  type MasterReply,
  NOT_ASKED,
  type OperatorMaster,
  RESERVED,
  TIMED_OUT,
} from '../master.interface.js';
import { REVOKED } from '../holder.js';
import type { KeyNames } from '../keyspace.js';
import { askAll, quorumOf } from '../acquire/quorum-call.js';

export interface Target {
  readonly resource: string;
  // Absent for a lock.
  readonly slot?: number | undefined;
}

// For people: `"stripe" #3` is a permit.
export function titleOf({ resource, slot }: Target): string {
  return `${showNames([resource])}${slot === undefined ? '' : ` #${slot}`}`;
}

interface Revocable {
  readonly name: string;
  // `undefined` while the master leaves requests unanswered, or if it has no such actions.
  readonly operator: OperatorMaster | undefined;
  problem?(): MasterReply | undefined;
}

export interface Owned {
  readonly master: string;
  // The token of the holder: a secret.
  readonly owner: string;
  readonly remaining: number;
}

export interface Owners {
  readonly held: readonly Owned[];
  // Revoked earlier and not expired yet.
  readonly revoked: readonly Owned[];
  // Masters that could not be asked, and why.
  readonly unasked: readonly MasterReport[];
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

export interface Release {
  readonly outcome: ForcedRelease;
  // Why the holder may still have the lock there.
  readonly unreached: readonly MasterReport[];
}

export interface OperatorContext {
  readonly masters: readonly Revocable[];
  readonly key: string;
  readonly clock: Clock;
  // Milliseconds after which a master that has not answered counts as timed out.
  readonly timeout: number;
}

export async function findOwners({ masters, key, ...limit }: OperatorContext): Promise<Owners> {
  const answers = await Promise.all(
    masters.map(async (one) => (one.operator ? inTime(one.operator.read(key), limit) : (one.problem?.() ?? NOT_ASKED))),
  );
  const kept: Owned[] = [];
  const unasked: MasterReport[] = [];
  for (const [index, answer] of answers.entries()) {
    const master = masters[index]?.name ?? '';
    if (answer && 'kind' in answer) unasked.push({ master, answer });
    else if (answer && !answer.value.startsWith(RESERVED)) {
      kept.push({ master, owner: answer.value, remaining: answer.remaining });
    }
  }
  const isRevoked = ({ owner }: Owned): boolean => owner === REVOKED;
  return { held: kept.filter((one) => !isRevoked(one)), revoked: kept.filter(isRevoked), unasked };
}

// The lock of a later holder is left alone, unless it has taken over within the process of the one that was found.
// Protocol 7.5
export function revokeOwners(owners: Owners, context: OperatorContext): Promise<Release> {
  const { masters, key } = context;
  return takeAway(owners, masters.length, async ({ master, owner }) => {
    const operator = masters.find(({ name }) => name === master)?.operator;
    return operator ? inTime(operator.revoke(key, owner), context) : NOT_ASKED;
  });
}

interface FreeContext extends Pick<OperatorContext, 'clock' | 'timeout'> {
  readonly masters: readonly Pick<Master, 'name' | 'ask'>[];
  readonly names: KeyNames;
}

// As the holder that was found would, so that the next waiter is notified.
export function freeOwners(owners: Owners, { masters, names, ...round }: FreeContext): Promise<Release> {
  const { keys, queues } = names;
  return takeAway(owners, masters.length, async ({ master, owner: token, remaining }) => {
    const request = { op: 'release', keys, queues, token, keepFor: 0, ttl: Math.max(0, remaining) } as const;
    const [report] = await askAll({ ...round, masters: masters.filter(({ name }) => name === master), request });
    return report?.answer?.kind === 'granted' ? 0 : (report?.answer ?? NOT_ASKED);
  });
}

// `take` resolves with the milliseconds until the key expires, or with the reason why the holder may still have it.
async function takeAway(
  { held, revoked, unasked }: Owners,
  masters: number,
  take: (from: Owned) => Promise<number | MasterReply>,
): Promise<Release> {
  const takings = await Promise.all(held.map(async (one) => ({ master: one.master, left: await take(one) })));
  const taken = takings.filter(({ left }) => typeof left === 'number');
  const kept = takings.flatMap(({ master, left }) => (typeof left === 'number' ? [] : [{ master, answer: left }]));
  const unreached = [...unasked, ...kept];
  const outcome = {
    released: isTakenAway(taken.length + revoked.length, masters) || unreached.length === 0,
    masters,
    taken: taken.map(({ master }) => master),
    unreached: unreached.map(({ master }) => master),
    left: Math.max(0, ...taken.map(({ left }) => Number(left)), ...revoked.map(({ remaining }) => remaining)),
  };
  return { outcome, unreached };
}

export function isRevoked({ held, revoked, unasked }: Owners, masters: number): boolean {
  if (revoked.length === 0) return false;
  return isTakenAway(revoked.length, masters) || held.length + unasked.length === 0;
}

// Too few masters are left for a quorum that could hold or extend a lock.
function isTakenAway(revoked: number, masters: number): boolean {
  return revoked > masters - quorumOf(masters);
}

export function inTime<T>(
  answer: Promise<T>,
  { clock, timeout }: Pick<OperatorContext, 'clock' | 'timeout'>,
): Promise<T | MasterReply> {
  return new Promise((resolve) => {
    const timer = clock.schedule(timeout, () => resolve(TIMED_OUT));
    void answer.then((value) => {
      timer.cancel();
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
  const places = `${taken.length} of ${counted(masters, 'master')} (${taken.join(', ') || 'none'})`;
  const others = unreached.length > 0 ? `, not on ${unreached.join(', ')}` : '';
  const verb = released ? 'released' : 'failed to release';
  return `audit: ${at} ${showNames([by])} ${verb} ${titleOf(record)} (${mode}, ${duration(left)} left) on ${places}${others}`;
}
