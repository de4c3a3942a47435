import { hash } from './hash.js';
import type { FenceCounters } from './master.interface.js';
import { ownName, type Settings } from './settings.js';

/** Number of counters on a master: memory stays bounded, whatever the number of keys. */
const COUNTERS = 4_096;

/** What is known of a fencing token that masters have to agree on. */
export interface FenceState {
  /** The largest counter seen. */
  readonly token: number;
  /** Whether a quorum answered exactly that. Then no later lock can get a smaller or an equal one. */
  readonly agreed: boolean;
}

/** Name of the hash that holds all counters of a master. */
export function countersName(settings: Settings): string {
  return ownName(settings, 'fences');
}

/** The counters of some keys. */
export function countersOf(keys: readonly string[]): FenceCounters {
  return { fields: keys.map((key) => hash(key) % COUNTERS) };
}

/**
 * What a round of answers makes of a token.
 *
 * A larger answer replaces the token: it belongs to an attempt that got ahead of us on some master. Two quorums share
 * a master, where the later lock started from the earlier token plus one, so it is larger in the end.
 *
 * @see https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
 */
export function agree(token: number, answers: readonly number[], quorum: number): FenceState {
  let largest = token;
  for (const answer of answers) largest = Math.max(largest, answer);
  let repeated = 0;
  for (const answer of answers) if (answer === largest) repeated++;
  return { token: largest, agreed: repeated >= quorum };
}
