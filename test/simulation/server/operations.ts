import { BARRIER_LIFE, RESERVATION_LIFE } from '../../../lib/core/master.interface.js';
import { EXPIRY_RESOLUTION } from '../../../lib/core/settings/settings.js';
import { MARKER_FIELDS } from '../../../lib/redis/guard/marker.js';
import { ANNOUNCED_FOR, MAX_ANNOUNCED, QUEUE_LIFE, TIMELY } from '../../../lib/redis/scripts/constants.js';
import type { OperationContext } from '../../../lib/memory/memory-database.js';
import type { Database } from './database.js';

// What the scripts of lib/redis do with the marker, written a second time in another language. The other operations are
// in lib/memory/operations.ts, which masters in memory share. A change of a script must change its operation, too:
// model.spec.ts runs both on the same traces and compares them.

/** Lifetimes, in milliseconds: of a key that is reserved for a woken waiter, of a queue, and of a barrier. As in the scripts. */
export const LIVES: OperationContext['lives'] = {
  reservation: RESERVATION_LIFE,
  queue: QUEUE_LIFE,
  barrier: BARRIER_LIFE,
};

/** Seeded faults in a script. Each corresponds to a mutant of the script. */
export type ModelFault = 'marker-is-ignored' | 'history-is-ignored' | 'generation-is-ignored';

/** What an operation on the marker may access. */
export interface Surface {
  readonly data: Database;
  readonly faults: ReadonlySet<ModelFault>;
  readonly lives: OperationContext['lives'];
  /** Wall clock of the server, in microseconds. */
  readonly time: () => number;
  /** Identifies the process of the server, and the history of its data. */
  readonly run: string;
  readonly replid: string;
  /** Returns the number of receivers. */
  readonly publish: (channel: string, message: string) => number;
}

/** The data that the client expects. */
export interface Mark {
  readonly marker: string;
  readonly nonce: string;
  /** Empty if it is not compared. */
  readonly history: string;
}

/** Whether the data is what the client expects. */
export function isMarked({ data, faults, replid }: Surface, mark: Mark | undefined): boolean {
  if (!mark) return true;
  if (!faults.has('marker-is-ignored') && data.hget(mark.marker, 'nonce') !== mark.nonce) return false;
  return mark.history === '' || mark.history === replid || faults.has('history-is-ignored');
}

/** Announces a ttl. Returns the ttl that has been announced to all masters. */
export function announce({ data, time }: Surface, marker: string, announcement: Announcement): string {
  const { ttl, lengthens, factor, known } = announcement;
  const now = Math.floor(time() / 1_000);
  const mine = Math.ceil(now + ttl * factor + ANNOUNCED_FOR);
  const before = Number(data.hget(marker, 'known') ?? 0);
  const reported = Math.max(known, before);
  if (known > before) data.hset(marker, 'known', whole(known));
  if (ttl === 0) return String(reported);
  const pairs = [...(data.hget(marker, 'ttls') ?? '').matchAll(/(\d+):(\d+)/g)];
  const alive = pairs.map(([, level, till]) => [Number(level), Number(till)] as [number, number]);
  const current = alive.filter(([, till]) => till > now);
  const kept = current.filter(([level, till]) => level > ttl || till > mine);
  kept.push([ttl, mine]);
  kept.sort(([one], [other]) => other - one);
  while (kept.length > MAX_ANNOUNCED) {
    const [, till] = kept.pop() as [number, number];
    const last = kept.at(-1) as [number, number];
    last[1] = Math.max(last[1], till);
  }
  data.hset(marker, 'ttls', kept.map((pair) => pair.map(whole).join(':')).join(' '));
  const from = Number(data.hget(marker, 'from') ?? 0);
  const longer = Number(data.hget(marker, 'at') ?? 0) + Math.ceil(ttl * factor) + EXPIRY_RESOLUTION;
  if (lengthens && from > now && longer > from) data.hset(marker, 'from', whole(longer));
  return String(reported);
}

export interface Announcement {
  readonly ttl: number;
  readonly lengthens: boolean;
  readonly factor: number;
  readonly known: number;
}

/** Like '%.0f'. */
function whole(number: number): string {
  return number.toFixed(0);
}

/** Compares and sets the marker. */
export function mark({ data, run, replid, time }: Surface, marker: string, words: readonly string[]): number {
  const [expectedRun, expectedReplid, readAt, isWhole, raw, ...changes] = words.map(String);
  if (run !== expectedRun || replid !== expectedReplid) return 0;
  if (readAt !== '' && Math.floor(time() / 1_000) - Number(readAt) > TIMELY) return 0;
  const values = MARKER_FIELDS.map((field) => {
    const isCompared = isWhole === '1' || (field !== 'ttls' && field !== 'known');
    return isCompared ? (data.hget(marker, field) ?? '') : '';
  });
  if (values.join('\n') !== raw) return 0;
  for (let i = 0; i < changes.length; i += 2) data.hset(marker, changes[i] as string, changes[i + 1] as string);
  return 1;
}

export function rawMarker(data: Database, marker: string | undefined): string[] {
  return MARKER_FIELDS.map((field) => (marker === undefined ? '' : (data.hget(marker, field) ?? '')));
}
