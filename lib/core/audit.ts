import { duration, showNames } from './display.js';
import { type Target, titleOf } from './target.js';
import type { ForcedRelease } from './forced-release.js';

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
