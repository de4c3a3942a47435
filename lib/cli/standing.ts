import { quorumOf } from '../core/acquire/quorum-call.js';
import { driftOf, resolveSettings } from '../core/settings/settings.js';
import { reasonFor, type Relation, relationOf } from '../redis/guard/data-record.js';
import type { ServerIdentity } from '../redis/identity.js';
import { EARLY_FROM } from '../redis/guard/new-masters.js';

/** What the marker of a master means for its votes. */
export interface MasterStanding {
  readonly data: Relation;
  /** Milliseconds until its votes count, 0 if they count now; `undefined` if a process has to connect to it first. */
  readonly wait: number | undefined;
  /** Why its votes do not count. */
  readonly reason: string;
}

const DEFAULTS = resolveSettings({});

/**
 * Judges the data of a master as a process would that connects to it now.
 *
 * @param isDurable whether the applications declare that it is
 */
export function standingOf(report: ServerIdentity, isDurable = false): MasterStanding {
  const { marker } = report;
  const data = relationOf(report, { isDurable, nonce: '' });
  if (!marker) return { data, wait: undefined, reason: 'no process has met its data yet' };
  if (data === 'unknown') {
    return { data, wait: undefined, reason: `${reasonFor(report, marker)}, and no process has met it since` };
  }
  if (data === 'renamed') {
    const change = marker.run === report.run ? 'its history has another name' : 'it was restarted with all of its data';
    return { data, wait: undefined, reason: `${change}, and no process has met it since` };
  }
  const left = Math.max(0, Math.min(marker.from - report.time, marker.wait));
  return { data, wait: left, reason: marker.reason };
}

/**
 * The longest wait if no ttl is longer than `maxTtl`, in milliseconds. A clock that was set back cannot lengthen it.
 */
export function quarantineFor(maxTtl: number): number {
  return Math.ceil(maxTtl + driftOf(DEFAULTS, maxTtl));
}

/** Milliseconds until a quorum of the masters votes; `undefined` if a process has to connect to them first. */
export function waitForQuorum(waits: readonly (number | undefined)[], masters: number): number | undefined {
  const sorted = waits.map((wait) => wait ?? Infinity).sort((a, b) => a - b);
  const wait = sorted[quorumOf(masters) - 1] ?? Infinity;
  return wait === Infinity ? undefined : wait;
}

/** Whether a process without locks lets all masters vote early: no master votes yet, and no holder has vetoed. */
export function mayVoteEarly(reports: readonly (ServerIdentity | undefined)[]): boolean {
  return (
    reports.length >= EARLY_FROM &&
    reports.every((report) => {
      if (!report) return false;
      const { data, wait } = standingOf(report);
      return data === 'unknown' || (data === 'known' && wait !== 0 && report.marker?.isVetoed === false);
    })
  );
}
