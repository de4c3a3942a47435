import { duration, showNames } from '../display.js';
import type { Clock } from '../clock.js';
import type { MasterReport } from '../errors.js';
import { type MasterReply, NOT_ASKED, type OperatorMaster, TIMED_OUT } from '../master.interface.js';
import { REVOKED } from '../holder.js';
import { quorumOf } from '../acquire/quorum-call.js';

/** A lock, or one permit. */
export interface Target {
  readonly resource: string;
  /** The slot of the permit; absent for a lock. */
  readonly slot?: number | undefined;
}

/** For people: `"stripe" #3` is a permit. */
export function titleOf({ resource, slot }: Target): string {
  return `${showNames([resource])}${slot === undefined ? '' : ` #${slot}`}`;
}

/** The beginning of a hand-off reservation: the value of a key that is kept for the next waiter for a moment. */
export const RESERVED = 'reserved for ';

/** A master that may offer the actions of operators. */
interface Revocable {
  readonly name: string;
  /** `undefined` while the master leaves requests unanswered, or if it has no such actions. */
  readonly operator: OperatorMaster | undefined;
}

/** A key on one master. */
interface Owned {
  readonly master: string;
  /** The token of the holder: a secret. */
  readonly owner: string;
  readonly remaining: number;
}

/** The holders of a resource on all masters. */
export interface Owners {
  readonly held: readonly Owned[];
  /** Keys that were revoked earlier and have not expired yet. */
  readonly revoked: readonly Owned[];
  /** Masters that could not be asked, and why. */
  readonly unasked: readonly MasterReport[];
}

/** The result of a forced release. */
export interface ForcedRelease {
  /** Whether no process can hold or extend the lock any more. */
  readonly released: boolean;
  /** Total number of masters. */
  readonly masters: number;
  readonly taken: readonly string[];
  readonly unreached: readonly string[];
  /** Milliseconds until the key expires; no process can extend it any more if `released`. */
  readonly left: number;
}

/** The masters, the key and the time limit of an operator's action. */
export interface OperatorContext {
  readonly masters: readonly Revocable[];
  readonly key: string;
  readonly clock: Clock;
  /** Milliseconds after which a master that has not answered counts as timed out. */
  readonly timeout: number;
}

/** Finds the holders of a key on all masters. */
export async function findOwners(context: OperatorContext): Promise<Owners> {
  const kept: Owned[] = [];
  const unasked: MasterReport[] = [];
  await Promise.all(
    context.masters.map(async ({ name: master, operator }) => {
      const answer = operator ? await inTime(operator.read(context.key), context) : NOT_ASKED;
      if (answer === null) return;
      if ('kind' in answer) unasked.push({ master, answer });
      else if (!answer.value.startsWith(RESERVED)) {
        kept.push({ master, owner: answer.value, remaining: answer.remaining });
      }
    }),
  );
  const isRevoked = ({ owner }: Owned): boolean => owner === REVOKED;
  return { held: kept.filter((one) => !isRevoked(one)), revoked: kept.filter(isRevoked), unasked };
}

/**
 * Keeps the holders that were found from extending their lock. The lock of a later holder is left alone, unless the holder
 * that was found has passed its own on to it within its process.
 * Protocol 7.5.
 */
export async function revokeOwners(
  { held, revoked, unasked }: Owners,
  context: OperatorContext,
): Promise<ForcedRelease> {
  const { masters, key } = context;
  const takings = await Promise.all(
    held.map(async ({ master, owner }) => {
      const operator = masters.find(({ name }) => name === master)?.operator;
      return { master, left: operator ? await inTime(operator.revoke(key, owner), context) : NOT_ASKED };
    }),
  );
  const taken = takings.filter(({ left }) => typeof left === 'number');
  const unreached = [...unasked, ...takings.filter(({ left }) => typeof left !== 'number')];
  return {
    released: isTakenAway(taken.length + revoked.length, masters.length) || unreached.length === 0,
    masters: masters.length,
    taken: taken.map(({ master }) => master),
    unreached: unreached.map(({ master }) => master),
    left: Math.max(0, ...taken.map(({ left }) => Number(left)), ...revoked.map(({ remaining }) => remaining)),
  };
}

/** Whether the lock was released by force, so that no process can hold or extend it any more. */
export function isRevoked({ held, revoked, unasked }: Owners, masters: number): boolean {
  if (revoked.length === 0) return false;
  return isTakenAway(revoked.length, masters) || held.length + unasked.length === 0;
}

/** Whether too few masters are left for a quorum that could hold or extend a lock. */
function isTakenAway(revoked: number, masters: number): boolean {
  return revoked > masters - quorumOf(masters);
}

/** The answer of a master, or `TIMED_OUT`. */
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

/** A forced release: the operator, the lock, the time and the masters. */
export interface AuditRecord extends ForcedRelease, Target {
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly by: string;
  readonly mode: 'revoked' | 'at-once';
}

/** Formats a record as one line of a log, whatever characters the names contain. */
export function auditLine(record: AuditRecord): string {
  const { at, by, mode, released, masters, taken, unreached, left } = record;
  const places = `${taken.length} of ${masters} masters (${taken.join(', ') || 'none'})`;
  const others = unreached.length > 0 ? `, not on ${unreached.join(', ')}` : '';
  const verb = released ? 'released' : 'failed to release';
  return `audit: ${at} ${showNames([by])} ${verb} ${titleOf(record)} (${mode}, ${duration(left)} left) on ${places}${others}`;
}
