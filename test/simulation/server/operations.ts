import { RESERVED_FOR } from '../../../lib/core/master.interface.js';
import { ENDLESS, FREE, FREE_AMONG_OTHERS, UNMARKED } from '../../../lib/redis/script-answers.js';
import { type Database, protect } from './database.js';

// What the scripts of lib/redis do, said a second time in another language: whoever changes a script changes
// its operation here. model.spec.ts runs both on the same traces and compares.

/** For how many milliseconds a key is kept for whoever was woken, and a queue for those who joined it. */
export interface Lives {
  readonly reservation: number;
  readonly queue: number;
}

/** As in the scripts. */
export const LIVES: Lives = { reservation: RESERVED_FOR, queue: 5_000 };
/** How far clocks may be ahead, and how many dead waiters are skipped: as in the scripts. */
const MAX_CLOCK_SKEW = 60_000;
const MOST_SKIPPED = 100;
const PROBE_LIFE = 1_000;

/** Seeded faults in a script, which a mutant of its text stands for. */
export type ModelFault =
  'release-deletes-any' | 'extend-takes-any' | 'confirm-writes-any' | 'acquire-ignores-marker' | 'floor-is-ignored';

/** What an operation may touch. */
export interface Surface {
  readonly data: Database;
  readonly faults: ReadonlySet<ModelFault>;
  readonly lives: Lives;
  /** Wall clock of the server, in microseconds. */
  readonly time: () => number;
  /** Returns how many heard it. */
  readonly publish: (channel: string, message: string) => number;
}

export interface Counters {
  readonly hash: string;
  readonly fields: readonly string[];
  /** What the client has: the counters shall not be smaller. */
  readonly token: number;
}

export interface Acquire {
  readonly keys: readonly string[];
  readonly token: string;
  readonly ttl: number;
  readonly queue: { readonly queues: readonly string[]; readonly waiter: string; readonly waited: number } | undefined;
  readonly mark: { readonly marker: string; readonly nonce: string } | undefined;
  readonly fence: Counters | undefined;
}

export interface Outcome {
  /** A status, or for how long the keys are held. */
  readonly status: number;
  readonly fence: string | undefined;
}

export function acquire(server: Surface, { keys, token, ttl, queue, mark, fence }: Acquire): Outcome {
  const { data, faults } = server;
  const ignoresMark = faults.has('acquire-ignores-marker');
  if (mark && !ignoresMark && data.hget(mark.marker, 'nonce') !== mark.nonce)
    return { status: UNMARKED, fence: undefined };
  const reserved = queue && reservedFor(queue.waiter);
  const first = data.get(keys[0] as string);
  const isHeld = keys.map((key) => {
    const owner = data.get(key);
    return owner !== undefined && owner !== token && owner !== reserved;
  });
  if (isHeld.includes(true)) {
    const longest = longestOf(data, keys, isHeld);
    if (queue) queueUp(server, keys, isHeld, queue);
    return { status: longest, fence: undefined };
  }
  const drawn = fence && draw(server, fence, first === token);
  for (const key of keys) data.set(key, token, ttl);
  let crowded = false;
  for (const name of queue?.queues ?? []) {
    protect(() => data.zrem(name, queue?.waiter ?? ''));
    if (data.exists(name)) crowded = true;
  }
  return { status: crowded ? FREE_AMONG_OTHERS : FREE, fence: drawn };
}

export function extend(
  { data, faults }: Surface,
  keys: readonly string[],
  token: string,
  ttl: number,
  fence: Counters | undefined,
): number {
  const takesAny = faults.has('extend-takes-any');
  const isHeld = keys.map((key) => ![undefined, token].includes(data.get(key)) && !takesAny);
  if (isHeld.includes(true)) return longestOf(data, keys, isHeld);
  let step = 0;
  for (const key of keys) {
    if (data.exists(key)) continue;
    data.set(key, token, ttl);
    step = 1;
  }
  for (const key of keys) data.pexpire(key, ttl);
  if (fence) protect(() => raise(data, fence, fence.token, step));
  return FREE;
}

/** The counters, or nothing if the keys are not ours. */
export function confirm(
  { data, faults }: Surface,
  keys: readonly string[],
  token: string,
  fence: Counters,
): string | undefined {
  const isOurs = keys.every((key) => data.get(key) === token) || faults.has('confirm-writes-any');
  return isOurs ? raise(data, fence, fence.token, 0) : undefined;
}

export function release(
  server: Surface,
  keys: readonly string[],
  queues: readonly string[],
  token: string,
  keepFor: number,
): number {
  const { data, faults } = server;
  let crowded = false;
  for (const [index, key] of keys.entries()) {
    const owner = data.get(key);
    const isOurs = owner === token || (owner !== undefined && faults.has('release-deletes-any'));
    if (isOurs || owner === undefined) {
      if (isOurs && keepFor === 0) data.del(key);
      if (isOurs && keepFor !== 0) data.pexpire(key, keepFor);
      if (wakeNext(server, key, queues[index] as string)) crowded = true;
    } else if (owner.startsWith(reservedFor(''))) {
      crowded = true;
    }
  }
  return crowded ? FREE_AMONG_OTHERS : FREE;
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

export function probe({ data }: Surface, keys: readonly string[], mark: Acquire['mark']): number {
  if (mark && data.hget(mark.marker, 'nonce') !== mark.nonce) return UNMARKED;
  for (const key of keys) {
    data.set(key, '', PROBE_LIFE);
    data.del(key);
  }
  return FREE;
}

export interface Marking {
  readonly run: string;
  readonly nonce: string;
  readonly from: string;
  readonly max: string;
}

/** Compare and set of the marker. */
export function mark(
  { data }: Surface,
  marker: string,
  expected: { readonly nonce: string; readonly max: string },
  marking: Marking,
  run: string,
): number {
  if (run !== marking.run) return 0;
  if ((data.hget(marker, 'nonce') ?? '') !== expected.nonce) return 0;
  if ((data.hget(marker, 'max') ?? '') !== expected.max) return 0;
  for (const [field, value] of Object.entries(marking)) data.hset(marker, field, value as string);
  return 1;
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

function draw({ data, time, faults }: Surface, fence: Counters, isOurs: boolean): string {
  const { hash, fields } = fence;
  const floor = faults.has('floor-is-ignored') ? 1 : fence.token;
  let drawn = isOurs ? 0 : Math.min(floor, time() + MAX_CLOCK_SKEW * 1_000);
  const step = isOurs ? 0 : 1;
  for (const field of fields) drawn = Math.max(drawn, Number(data.hget(hash, field) ?? 0) + step);
  const text = String(drawn);
  for (const field of fields) data.hset(hash, field, text);
  return text;
}

function raise(data: Database, { hash, fields }: Counters, token: number, step: number): string {
  const raised = Math.max(token, ...fields.map((field) => Number(data.hget(hash, field) ?? 0) + step));
  for (const field of fields) data.hset(hash, field, String(raised));
  return String(raised);
}

function reservedFor(waiter: string): string {
  return `reserved for ${waiter}`;
}
