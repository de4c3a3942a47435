import { RESERVATION_LIFE } from '../../../lib/core/master.interface.js';
import { ANNOUNCED_FOR, EXPIRY_RESOLUTION, MOST_ANNOUNCED } from '../../../lib/redis/scripts/operations.lua.js';
import { MARKER_FIELDS } from '../../../lib/redis/guard/marker.js';
import { ENDLESS, FREE, FREE_WITH_WAITERS, HEALED } from '../../../lib/redis/scripts/statuses.js';
import { type Database, protect } from './database.js';

// The scripts of lib/redis, written a second time in another language. A change of a script must change its operation
// here, too. model.spec.ts runs both on the same traces and compares them.

/** Lifetimes, in milliseconds: of a key that is reserved for a woken waiter, and of a queue. */
export interface Lives {
  readonly reservation: number;
  readonly queue: number;
}

/** As in the scripts. */
export const LIVES: Lives = { reservation: RESERVATION_LIFE, queue: 5_000 };
/** How many dead waiters are skipped, as in the scripts. */
const MOST_SKIPPED = 100;
const PROBE_LIFE = 1_000;
/** How old the reading may be on which a change of the marker is based, in milliseconds, as in the scripts. */
const TIMELY = 2_000;

/** Seeded faults in a script. Each corresponds to a mutant of the script. */
export type ModelFault =
  | 'release-deletes-any'
  | 'extend-takes-any'
  | 'draw-for-any'
  | 'marker-is-ignored'
  | 'history-is-ignored'
  | 'floor-is-ignored';

/** What an operation may access. */
export interface Surface {
  readonly data: Database;
  readonly faults: ReadonlySet<ModelFault>;
  readonly lives: Lives;
  /** Wall clock of the server, in microseconds. */
  readonly time: () => number;
  /** Identifies the process of the server, and the history of its data. */
  readonly run: string;
  readonly replid: string;
  /** Returns the number of receivers. */
  readonly publish: (channel: string, message: string) => number;
}

export interface Counters {
  readonly hash: string;
  readonly fields: readonly string[];
  /** The counters must not be smaller than this. */
  readonly atLeast: number;
  /** `1` if this server draws for the first time. */
  readonly step: number;
}

/** The data that the client expects. */
export interface Mark {
  readonly marker: string;
  readonly nonce: string;
  /** Empty if it is not compared. */
  readonly history: string;
}

export interface Acquire {
  readonly keys: readonly string[];
  readonly token: string;
  readonly ttl: number;
  readonly queue: { readonly queues: readonly string[]; readonly waiter: string; readonly waited: number } | undefined;
}

/** Whether the data is what the client expects. */
export function isMarked({ data, faults, replid }: Surface, mark: Mark | undefined): boolean {
  if (!mark) return true;
  if (!faults.has('marker-is-ignored') && data.hget(mark.marker, 'nonce') !== mark.nonce) return false;
  return mark.history === '' || mark.history === replid || faults.has('history-is-ignored');
}

/** Returns a status, or for how long the keys are held. */
export function acquire(server: Surface, { keys, token, ttl, queue }: Acquire): number {
  const { data } = server;
  const reserved = queue && reservedFor(queue.waiter);
  const isHeld = keys.map((key) => {
    const owner = data.get(key);
    return owner !== undefined && owner !== token && owner !== reserved;
  });
  if (isHeld.includes(true)) {
    const longest = longestOf(data, keys, isHeld);
    if (queue) queueUp(server, keys, isHeld, queue);
    return longest;
  }
  for (const key of keys) data.set(key, token, ttl);
  let hasWaiters = false;
  for (const name of queue?.queues ?? []) {
    protect(() => data.zrem(name, queue?.waiter ?? ''));
    if (data.exists(name)) hasWaiters = true;
  }
  return hasWaiters ? FREE_WITH_WAITERS : FREE;
}

export function extend({ data, faults }: Surface, keys: readonly string[], token: string, ttl: number): number {
  const takesAny = faults.has('extend-takes-any');
  const isHeld = keys.map((key) => ![undefined, token].includes(data.get(key)) && !takesAny);
  if (isHeld.includes(true)) return longestOf(data, keys, isHeld);
  let status = FREE;
  for (const key of keys) {
    if (data.exists(key)) continue;
    data.set(key, token, ttl);
    status = HEALED;
  }
  for (const key of keys) data.pexpire(key, ttl);
  return status;
}

/** Returns the largest counter, or nothing if the keys do not belong to the token. */
export function draw(
  { data, faults }: Surface,
  keys: readonly string[],
  token: string,
  { hash, fields, atLeast, step }: Counters,
): string | undefined {
  const isOurs = keys.every((key) => data.get(key) === token) || faults.has('draw-for-any');
  if (!isOurs) return undefined;
  const floor = faults.has('floor-is-ignored') ? 1 : atLeast;
  const drawn = Math.max(floor, ...fields.map((field) => Number(data.hget(hash, field) ?? 0) + step));
  for (const field of fields) data.hset(hash, field, String(drawn));
  return String(drawn);
}

/** Announces a ttl. Returns the ttl that has been announced to all masters. */
export function announce({ data, time }: Surface, marker: string, announcement: Announcement): string {
  const { ttl, lengthens, factor, known } = announcement;
  const now = Math.floor(time() / 1_000);
  const mine = Math.ceil(now + ttl * factor + ANNOUNCED_FOR);
  const before = Number(data.hget(marker, 'known') ?? 0);
  const told = Math.max(known, before);
  if (known > before) data.hset(marker, 'known', whole(known));
  if (ttl === 0) return String(told);
  const pairs = [...(data.hget(marker, 'ttls') ?? '').matchAll(/(\d+):(\d+)/g)];
  const alive = pairs.map(([, level, till]) => [Number(level), Number(till)] as [number, number]);
  const current = alive.filter(([, till]) => till > now);
  const kept = current.filter(([level, till]) => level > ttl || till > mine);
  kept.push([ttl, mine]);
  kept.sort(([one], [other]) => other - one);
  while (kept.length > MOST_ANNOUNCED) {
    const [, till] = kept.pop() as [number, number];
    const last = kept.at(-1) as [number, number];
    last[1] = Math.max(last[1], till);
  }
  data.hset(marker, 'ttls', kept.map((pair) => pair.map(whole).join(':')).join(' '));
  const from = Number(data.hget(marker, 'from') ?? 0);
  const longer = Number(data.hget(marker, 'at') ?? 0) + Math.ceil(ttl * factor) + EXPIRY_RESOLUTION;
  if (lengthens && from > now && longer > from) data.hset(marker, 'from', whole(longer));
  return String(told);
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

export function release(
  server: Surface,
  keys: readonly string[],
  queues: readonly string[],
  token: string,
  keepFor: number,
): number {
  const { data, faults } = server;
  let hasWaiters = false;
  for (const [index, key] of keys.entries()) {
    const owner = data.get(key);
    const isOurs = owner === token || (owner !== undefined && faults.has('release-deletes-any'));
    if (isOurs || owner === undefined) {
      if (isOurs && keepFor === 0) data.del(key);
      if (isOurs && keepFor !== 0) data.pexpire(key, keepFor);
      if (wakeNext(server, key, queues[index] as string)) hasWaiters = true;
    } else if (owner.startsWith(reservedFor(''))) {
      hasWaiters = true;
    }
  }
  return hasWaiters ? FREE_WITH_WAITERS : FREE;
}

export function leave(server: Surface, keys: readonly string[], queues: readonly string[], waiter: string): number {
  const { data } = server;
  keys.forEach((key, index) => {
    const queue = queues[index] as string;
    protect(() => data.zrem(queue, waiter));
    if (data.get(key) !== reservedFor(waiter)) return;
    data.del(key);
    wakeNext(server, key, queue);
  });
  return FREE;
}

export function inspect({ data }: Surface, keys: readonly string[]): number {
  const isHeld = keys.map((key) => data.get(key) !== undefined);
  return isHeld.includes(true) ? longestOf(data, keys, isHeld) : FREE;
}

export function probe({ data }: Surface, keys: readonly string[]): number {
  for (const key of keys) {
    data.set(key, '', PROBE_LIFE);
    data.del(key);
  }
  return FREE;
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

function longestOf(data: Database, keys: readonly string[], isHeld: readonly boolean[]): number {
  const times = keys.filter((_, index) => isHeld[index]).map((key) => data.pttl(key));
  return times.includes(ENDLESS) ? ENDLESS : Math.max(...times);
}

function queueUp(
  server: Surface,
  keys: readonly string[],
  isHeld: readonly boolean[],
  { queues, waiter, waited }: NonNullable<Acquire['queue']>,
): void {
  const { data } = server;
  const since = Math.floor(server.time() / 1_000) - waited;
  keys.forEach((key, index) => {
    const queue = queues[index] as string;
    if (isHeld[index]) {
      protect(() => data.zadd(queue, waiter, since));
      protect(() => data.pexpire(queue, server.lives.queue));
    } else if (data.get(key) === reservedFor(waiter)) {
      data.del(key);
      wakeNext(server, key, queue);
    }
  });
}

function wakeNext({ data, lives, publish }: Surface, key: string, queue: string): boolean {
  for (let skipped = 0; skipped < MOST_SKIPPED; skipped++) {
    const waiter = protect(() => data.zpopmin(queue));
    if (waiter === undefined) return false;
    if (!data.exists(key)) protect(() => data.set(key, reservedFor(waiter), lives.reservation));
    if (publish(waiter, key) > 0) return true;
    if (data.get(key) === reservedFor(waiter)) data.del(key);
  }
  return false;
}

function reservedFor(waiter: string): string {
  return `reserved for ${waiter}`;
}
