import { BARRIER } from '../core/keyspace.js';
import { deferredTill } from './barriers.js';
import { contentOf, millisecondsOf, reservedFor, settle, sharedMember } from './key-content.js';
import type { OperationContext } from './operation-context.interface.js';

/** How many dead waiters one release skips, as in the scripts. */
const MOST_SKIPPED = 100;
/** Most members of a shared key, as in the scripts. */
export const MOST_HOLDERS = 1_000;

/** A place in the queues of some keys. */
export interface Place {
  readonly queues: readonly string[];
  readonly waiter: string;
  readonly isShared: boolean;
}

interface Arrival extends Place {
  readonly waited: number;
}

/** Joins the queues of the held keys. The reservation of another key is useless meanwhile: the next waiter gets it. */
export function queueUp(
  server: OperationContext,
  keys: readonly string[],
  isHeld: readonly boolean[],
  arrival: Arrival,
): void {
  const { data, attempt, lives } = server;
  const since = millisecondsOf(server) - arrival.waited;
  keys.forEach((key, index) => {
    const queue = arrival.queues[index] as string;
    if (isHeld[index]) {
      attempt(() => data.zaddNew(queue, memberOf(arrival), since));
      attempt(() => data.pexpire(queue, lives.queue));
    } else if (dropReservation(server, key, arrival)) {
      wake(server, key, queue);
    }
  });
}

/** Returns whether others wait in one of the queues. */
export function leaveQueues({ data, attempt }: OperationContext, place: Place): boolean {
  let hasWaiters = false;
  for (const queue of place.queues) {
    attempt(() => data.zrem(queue, memberOf(place)));
    if (data.exists(queue)) hasWaiters = true;
  }
  return hasWaiters;
}

/** The member of the queues. */
export function memberOf({ waiter, isShared }: Pick<Place, 'waiter' | 'isShared'>): string {
  return isShared ? sharedMember(waiter) : waiter;
}

/** Gives back the key that is reserved for a waiter. Returns whether it was. */
export function dropReservation(
  server: OperationContext,
  key: string,
  { waiter, isShared }: Pick<Place, 'waiter' | 'isShared'>,
): boolean {
  const { data } = server;
  const reservation = reservedFor(waiter);
  if (!isShared) {
    if (data.get(key) !== reservation) return false;
    data.del(key);
    return true;
  }
  if (!contentOf(server, key).shared?.ends.has(reservation)) return false;
  data.zrem(key, reservation);
  settle(server, key);
  return true;
}

/**
 * Notifies the processes that are next and listen, and keeps the key for them for a moment: one that waits for an
 * exclusive key, or all that wait for a shared one and have waited longer than the first of the others. Returns whether
 * processes wait.
 */
export function wake(server: OperationContext, key: string, queue: string): boolean {
  const { data, attempt } = server;
  const { owner, shared } = contentOf(server, key);
  let members = shared?.ends.size ?? 0;
  let isHeard = false;
  for (let skipped = 0; skipped < MOST_SKIPPED; skipped++) {
    const [head, since = 0] = data.zrange(queue)[0] ?? [];
    if (head === undefined) return isHeard;
    const [, reader] = /^shared (.*)$/s.exec(head) ?? [];
    const isBlocked = reader === undefined ? members > 0 : owner !== undefined || members >= MOST_HOLDERS;
    if (isBlocked) return true;
    const isDeferred =
      reader !== undefined && deferredTill(server, queue + BARRIER, { waiter: reader, since }) !== undefined;
    if (isDeferred) return true;
    if (attempt(() => data.zpopmin(queue)) === undefined) return isHeard;
    if (reader === undefined) {
      if (offer(server, key, head)) return true;
    } else if (invite(server, key, reader)) {
      isHeard = true; // @mutant wake-chain-broken-2-in-memory
      members++;
    }
  }
  return isHeard;
}

/** Offers an exclusive key to a waiter. Returns whether it listens. */
function offer({ data, lives, publish, attempt }: OperationContext, key: string, waiter: string): boolean {
  if (!data.exists(key)) attempt(() => data.set(key, reservedFor(waiter), lives.reservation));
  if (publish(waiter, key) > 0) return true;
  if (data.get(key) === reservedFor(waiter)) data.del(key);
  return false;
}

/** Offers a place among the shared holders of a key to a waiter. Returns whether it listens. */
function invite(server: OperationContext, key: string, waiter: string): boolean {
  const { data, lives, publish, attempt } = server;
  attempt(() => {
    data.zadd(key, reservedFor(waiter), millisecondsOf(server) + lives.reservation);
    settle(server, key);
  });
  if (publish(waiter, key) > 0) return true;
  attempt(() => {
    data.zrem(key, reservedFor(waiter));
    settle(server, key);
  });
  return false;
}
