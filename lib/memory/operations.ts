import {
  type AcquireRequest,
  type DrawRequest,
  type ExtendRequest,
  GRANTED,
  GRANTED_WITH_WAITERS,
  type GrantedReply,
  HEALED,
  type HeldReply,
  type InspectRequest,
  type LeaveRequest,
  type ProbeRequest,
  type QueueTicket,
  type ReleaseRequest,
} from '../core/master.interface.js';

import { holderFrom, REVOKED } from '../core/holder.js';

// The operations of the scripts in lib/redis/scripts, written a second time in another language. Masters in memory and
// the servers of the simulation share them. A change of a script must change its operation here, too: on the same
// traces, test/simulation/model.spec.ts compares the answers and the data of a real server with those of this model.

/** How many dead waiters one release skips, as in the scripts. */
const MOST_SKIPPED = 100;
/** Expiry of the key that a probe writes, in milliseconds, as in the scripts. */
const PROBE_LIFE = 1_000;

/** The commands that the operations use. */
export interface Commands {
  get(key: string): string | undefined;
  exists(key: string): boolean;
  /** Milliseconds until the key expires; negative if it never does. */
  pttl(key: string): number;
  /** @param ttl in milliseconds */
  set(key: string, value: string, ttl: number): void;
  del(key: string): void;
  /** @param ttl in milliseconds */
  pexpire(key: string, ttl: number): void;
  hget(key: string, field: number): string | undefined;
  hset(key: string, field: number, value: string): void;
  /** Adds a member to a sorted set, unless it is there. */
  zadd(key: string, member: string, score: number): void;
  zrem(key: string, member: string): void;
  /** Number of members. */
  zcard(key: string): number;
  /** Removes the member with the smallest score. */
  zpopmin(key: string): string | undefined;
}

/** A server that carries out the operations. */
export interface OperationContext {
  readonly data: Commands;
  /** Name of the hash of fencing counters. */
  readonly counters: string;
  /** How long a key stays reserved for a notified waiter, and how long a queue lives, in milliseconds. */
  readonly lives: { readonly reservation: number; readonly queue: number };
  /** Time of the server, in milliseconds. */
  readonly now: () => number;
  /** Notifies a waiter. Returns the number of listeners. */
  readonly publish: (waiter: string, key: string) => number;
  /** Runs a command whose failure does not end the operation. */
  readonly attempt: <T>(command: () => T) => T | undefined;
}

export function acquire(server: OperationContext, { keys, token, ttl, queue }: Acquisition): GrantedReply | HeldReply {
  const { data, attempt } = server;
  const reserved = queue && reservedFor(queue.waiter);
  const isHeld = keys.map((key) => {
    const owner = data.get(key);
    return owner !== undefined && owner !== token && owner !== reserved;
  });
  if (isHeld.includes(true)) {
    const held = longestOf(data, keys, isHeld);
    if (queue) queueUp(server, keys, isHeld, queue);
    return held;
  }
  for (const key of keys) data.set(key, token, ttl);
  let hasWaiters = false;
  for (const name of queue?.queues ?? []) {
    attempt(() => data.zrem(name, queue?.waiter ?? ''));
    if (data.exists(name)) hasWaiters = true;
  }
  return granted(hasWaiters);
}

export function extend(
  { data }: OperationContext,
  { keys, token, ttl }: Pick<ExtendRequest, 'keys' | 'token' | 'ttl'>,
): GrantedReply | HeldReply {
  const isHeld = keys.map((key) => ![undefined, token].includes(data.get(key))); // @mutant extension-without-owner-check-in-memory
  if (isHeld.includes(true)) return longestOf(data, keys, isHeld);
  let isHealed = false;
  for (const key of keys) {
    if (data.exists(key)) continue;
    data.set(key, token, ttl);
    isHealed = true;
  }
  for (const key of keys) data.pexpire(key, ttl);
  return isHealed ? HEALED : GRANTED;
}

/** Grants with the largest counter as `fence`. */
export function draw(
  { data, counters }: OperationContext,
  { keys, token, counters: fields, atLeast, isFirst }: Pick<DrawRequest, 'keys' | 'token' | keyof Raise>,
): GrantedReply | HeldReply {
  const isOurs = keys.every((key) => data.get(key) === token); // @mutant draw-for-any-holder-in-memory
  if (!isOurs) return { kind: 'held', remaining: undefined };
  const step = isFirst ? 1 : 0;
  const drawn = Math.max(atLeast, ...fields.map((field) => Number(data.hget(counters, field) ?? 0) + step));
  for (const field of fields) data.hset(counters, field, String(drawn));
  return { ...GRANTED, fence: drawn };
}

export function release(
  server: OperationContext,
  { keys, queues, token, keepFor }: Pick<ReleaseRequest, 'keys' | 'queues' | 'token' | 'keepFor'>,
): GrantedReply {
  const { data } = server;
  let hasWaiters = false;
  for (const [index, key] of keys.entries()) {
    const owner = data.get(key);
    const isOurs = owner === token; // @mutant unconditional-delete-in-memory
    if (isOurs || owner === undefined) {
      if (isOurs && keepFor === 0) data.del(key);
      if (isOurs && keepFor !== 0) data.pexpire(key, keepFor);
      if (wakeNext(server, key, queues[index] as string)) hasWaiters = true;
    } else if (owner.startsWith(reservedFor(''))) {
      hasWaiters = true;
    }
  }
  return granted(hasWaiters);
}

export function leave(
  server: OperationContext,
  { keys, queues, waiter }: Pick<LeaveRequest, 'keys' | 'queues' | 'waiter'>,
): GrantedReply {
  const { data, attempt } = server;
  keys.forEach((key, index) => {
    const queue = queues[index] as string;
    attempt(() => data.zrem(queue, waiter));
    if (data.get(key) !== reservedFor(waiter)) return;
    data.del(key);
    wakeNext(server, key, queue);
  });
  return GRANTED;
}

export function inspect(
  { data }: OperationContext,
  { keys, queues }: Pick<InspectRequest, 'keys' | 'queues'>,
): GrantedReply | HeldReply {
  const isHeld = keys.map((key) => data.get(key) !== undefined);
  if (!isHeld.includes(true)) return GRANTED;
  return {
    ...longestOf(data, keys, isHeld),
    waiting: Math.max(0, ...(queues ?? []).map((queue) => data.zcard(queue))),
  };
}

export function probe({ data }: OperationContext, { keys }: Pick<ProbeRequest, 'keys'>): GrantedReply {
  for (const key of keys) {
    data.set(key, '', PROBE_LIFE);
    data.del(key);
  }
  return GRANTED;
}

/** The value that replaces a token in a key that is reserved for the waiter that was notified. */
export function reservedFor(waiter: string): string {
  return `reserved for ${waiter}`;
}

type Acquisition = Pick<AcquireRequest, 'keys' | 'token' | 'ttl' | 'queue'>;
type Raise = Pick<DrawRequest, 'counters' | 'atLeast' | 'isFirst'>;

function granted(hasWaiters: boolean): GrantedReply {
  return hasWaiters ? GRANTED_WITH_WAITERS : GRANTED;
}

/**
 * The longest remaining time of the keys that are held, `undefined` if one of them never expires, and the holder of the
 * first of them.
 */
function longestOf(data: Commands, keys: readonly string[], isHeld: readonly boolean[]): HeldReply {
  const held = keys.filter((_, index) => isHeld[index]);
  const times = held.map((key) => data.pttl(key));
  const remaining = Math.min(...times) < 0 ? undefined : Math.max(...times);
  const owner = data.get(held[0] ?? '') ?? '';
  const holder = holderFrom(owner);
  return { kind: 'held', remaining, ...(holder && { holder }), ...(owner === REVOKED && { revoked: true }) };
}

/** Joins the queues of the held keys. The reservation of another key is useless meanwhile: the next waiter gets it. */
function queueUp(
  server: OperationContext,
  keys: readonly string[],
  isHeld: readonly boolean[],
  { queues, waiter, waited }: QueueTicket,
): void {
  const { data, attempt, lives } = server;
  const since = Math.floor(server.now()) - waited;
  keys.forEach((key, index) => {
    const queue = queues[index] as string;
    if (isHeld[index]) {
      attempt(() => data.zadd(queue, waiter, since));
      attempt(() => data.pexpire(queue, lives.queue));
    } else if (data.get(key) === reservedFor(waiter)) {
      data.del(key);
      wakeNext(server, key, queue);
    }
  });
}

/** Notifies the longest-waiting process that listens, and keeps the key for it for a moment. Returns whether one does. */
function wakeNext({ data, lives, publish, attempt }: OperationContext, key: string, queue: string): boolean {
  for (let skipped = 0; skipped < MOST_SKIPPED; skipped++) {
    const waiter = attempt(() => data.zpopmin(queue));
    if (waiter === undefined) return false;
    if (!data.exists(key)) attempt(() => data.set(key, reservedFor(waiter), lives.reservation));
    if (publish(waiter, key) > 0) return true;
    if (data.get(key) === reservedFor(waiter)) data.del(key);
  }
  return false;
}
