import { hostname, userInfo } from 'node:os';
import { showNames } from '../core/shown.js';
import { duration } from './table.js';

/** Who has taken which lock away, when, and where. */
export interface AuditRecord {
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly by: string;
  readonly resource: string;
  readonly key: string;
  readonly mode: 'revoked' | 'at-once';
  /** Whether nobody can hold or extend it any more. */
  readonly released: boolean;
  /** Number of all masters. */
  readonly masters: number;
  readonly taken: readonly string[];
  readonly unreached: readonly string[];
  /** Milliseconds until the key expires; nobody extends it any more if it is released. */
  readonly left: number;
}

/** The user of this machine. */
export function operator(): string {
  const { SUDO_USER } = process.env;
  const name = userName();
  const who = SUDO_USER !== undefined && SUDO_USER !== name ? `${SUDO_USER} as ${name}` : name;
  return `${who}@${hostname()}`;
}

/** For a log: one line, whatever the names are. */
export function auditLine(record: AuditRecord): string {
  const { at, by, resource, mode, released, masters, taken, unreached, left } = record;
  const places = `${taken.length} of ${masters} masters (${taken.join(', ') || 'none'})`;
  const others = unreached.length > 0 ? `, not on ${unreached.join(', ')}` : '';
  const verb = released ? 'released' : 'failed to release';
  return `audit: ${at} ${showNames([by])} ${verb} ${showNames([resource])} (${mode}, ${duration(left)} left) on ${places}${others}`;
}

/** A container may run under a number that has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
