import { hostname, userInfo } from 'node:os';
import { showNames } from '../core/display.js';
import { duration, plain } from './table.js';

/** A forced release: the operator, the lock, the time and the masters. */
export interface AuditRecord {
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly by: string;
  readonly resource: string;
  readonly key: string;
  readonly mode: 'revoked' | 'at-once';
  /** Whether no process can hold or extend the lock any more. */
  readonly released: boolean;
  /** Total number of masters. */
  readonly masters: number;
  readonly taken: readonly string[];
  readonly unreached: readonly string[];
  /** Milliseconds until the key expires; no process can extend it any more if `released`. */
  readonly left: number;
}

/** An early end of a master's wait: the operator, the master, and what was known about it. */
export interface TrustRecord {
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly by: string;
  readonly master: string;
  readonly trusted: boolean;
  /** Why its votes did not count. */
  readonly reason: string;
  /** Milliseconds that its wait would still have lasted; `null` if it had not begun. */
  readonly left: number | null;
  /** Whether a process that held a lock had objected to an early end. */
  readonly vetoed: boolean;
  /** Run id of the server. */
  readonly run: string;
}

/** The user that runs the command, and the host. */
export function operator(): string {
  const { SUDO_USER } = process.env;
  const name = userName();
  const who = SUDO_USER !== undefined && SUDO_USER !== name ? `${SUDO_USER} as ${name}` : name;
  return `${who}@${hostname()}`;
}

/** Formats a record as one line of a log, whatever characters the names contain. */
export function auditLine(record: AuditRecord): string {
  const { at, by, resource, mode, released, masters, taken, unreached, left } = record;
  const places = `${taken.length} of ${masters} masters (${taken.join(', ') || 'none'})`;
  const others = unreached.length > 0 ? `, not on ${unreached.join(', ')}` : '';
  const verb = released ? 'released' : 'failed to release';
  return `audit: ${at} ${showNames([by])} ${verb} ${showNames([resource])} (${mode}, ${duration(left)} left) on ${places}${others}`;
}

/** Formats a record as one line of a log, whatever characters the names contain. */
export function trustLine({ at, by, master, trusted, reason, left, vetoed, run }: TrustRecord): string {
  const verb = trusted ? 'trusted' : 'failed to trust';
  const wait = left === null ? 'its wait had not begun' : `${duration(left)} of its wait left`;
  const objection = vetoed ? ', against the veto of a holder' : '';
  return `audit: ${at} ${showNames([by])} ${verb} ${showNames([master])} (run ${run || 'unknown'}, ${plain(reason)}, ${wait}${objection})`;
}

/** A container may run under a user id that has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
