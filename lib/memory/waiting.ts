import {
  contentOf,
  millisecondsOf,
  type OperationContext,
  reservedFor,
  settle,
  sharedMember,
} from './memory-database.js';
import { BARRIER } from '../core/keyspace.js';
import { MAX_SHARED_HOLDERS, SHARED_MARK } from '../core/master.interface.js';

interface Deferral {
  readonly till: number;
  readonly waiters: ReadonlySet<string | undefined>;
}

export function deferralOf(
  server: OperationContext,
  barrier: string,
  { waiter, since }: { readonly waiter: string | undefined; readonly since: number },
): Deferral | undefined {
  const entries = server.data.zrange(barrier);
  if (entries.length === 0) return undefined;
  const now = millisecondsOf(server);
  const isBefore = ([entry, end]: readonly [string, number]): boolean => {
    const arrival = arrivalIn(entry);
    return end > now && arrival.waiter !== waiter && arrival.since <= since; // @mutant barriers-not-looked-at-in-memory
  };
  const before = entries.filter(isBefore);
  const till = before.at(-1)?.[1];
  return till === undefined ? undefined : { till, waiters: new Set(before.map(([entry]) => arrivalIn(entry).waiter)) };
}

// An entry consists of the moment at which the waiter arrived, and its name.
export function arrivalIn(entry: string): { readonly since: number; readonly waiter: string | undefined } {
  const [, since, waiter] = /^(-?\d+) (.*)$/s.exec(entry) ?? [];
  return { since: Number(since ?? Infinity), waiter };
}

// Dead waiters that one release skips, as in the scripts.
const MAX_SKIPPED = 100;

interface Place {
  readonly queues: readonly string[];
  readonly waiter: string;
  readonly isShared: boolean;
}

interface Arrival extends Place {
  readonly waited: number;
}

// The reservation of another key is useless meanwhile: the next waiter gets it. So is that of a key for which the
// waiter is deferred.
export function queueUp(
  server: OperationContext,
  keys: readonly string[],
  isHeld: readonly boolean[],
  arrival: Arrival,
): void {
  keys.forEach((key, index) => {
    const queue = arrival.queues[index] as string;
    if (isHeld[index]) {
      if (arrival.isShared) dropReservation(server, key, arrival);
      enqueue(server, queue, { member: memberOf(arrival), waited: arrival.waited, isNew: true });
    } else if (dropReservation(server, key, arrival)) {
      wake(server, key, queue);
    }
  });
}

interface Enqueued {
  readonly member: string;
  // Milliseconds.
  readonly waited: number;
  // Whether a member that is in the queue already keeps its age.
  readonly isNew: boolean;
}

export function enqueue(server: OperationContext, queue: string, { member, waited, isNew }: Enqueued): void {
  const { data, attempt, lives } = server;
  const since = millisecondsOf(server) - waited;
  attempt(() => (isNew ? data.zaddNew(queue, member, since) : data.zadd(queue, member, since)));
  attempt(() => data.pexpire(queue, lives.queue));
}

export function leaveQueues({ data, attempt }: OperationContext, place: Place): boolean {
  let hasWaiters = false;
  for (const queue of place.queues) {
    attempt(() => data.zrem(queue, memberOf(place)));
    if (data.exists(queue)) hasWaiters = true;
  }
  return hasWaiters;
}

export function memberOf({ waiter, isShared }: Pick<Place, 'waiter' | 'isShared'>): string {
  return isShared ? sharedMember(waiter) : waiter;
}

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

// One process that waits for an exclusive key is next, or all that wait for a shared one and have waited longer than
// the first of the others. The key stays reserved for them for a moment. Returns whether processes wait.
// Protocol 5.4 and 11.7
export function wake(server: OperationContext, key: string, queue: string): boolean {
  const { data, attempt } = server;
  const { owner, shared } = contentOf(server, key);
  let members = shared?.ends.size ?? 0;
  let isHeard = false;
  for (let skipped = 0; skipped < MAX_SKIPPED; skipped++) {
    const next = nextIn(server, queue);
    if (next === 'none') return isHeard;
    if (next === 'notified') return true;
    const { member, reader } = next;
    if (members >= (reader === undefined ? 1 : MAX_SHARED_HOLDERS)) return true;
    const isPopped = attempt(() => (data.zrem(queue, member), true));
    if (!isPopped) return isHeard;
    if (reader === undefined) {
      if (offer(server, key, member)) return true;
    } else if (invite(server, key, { waiter: reader, isKept: owner !== undefined })) {
      isHeard = true; // @mutant wake-chain-broken-2-in-memory
      members++;
    }
  }
  return isHeard;
}

interface NextWaiter {
  readonly member: string;
  readonly reader: string | undefined;
}

// Each request of a waiter measures its age anew, so a waiter that precedes the head at the barrier may be behind it in
// the queue.
function nextIn(server: OperationContext, queue: string): NextWaiter | 'none' | 'notified' {
  const members = server.data.zrange(queue);
  const [head, since] = members[0] ?? [undefined, 0];
  if (head === undefined) return 'none';
  const reader = head.startsWith(SHARED_MARK) ? head.slice(SHARED_MARK.length) : undefined;
  const deferral = reader === undefined ? undefined : deferralOf(server, queue + BARRIER, { waiter: reader, since });
  if (!deferral) return { member: head, reader };
  const writer = members.find(([member]) => deferral.waiters.has(member));
  return writer ? { member: writer[0], reader: undefined } : 'notified';
}

// Returns whether the waiter listens.
function offer({ data, lives, publish, attempt }: OperationContext, key: string, waiter: string): boolean {
  if (!data.exists(key)) attempt(() => data.set(key, reservedFor(waiter), lives.reservation));
  if (publish(waiter, key) > 0) return true;
  if (data.get(key) === reservedFor(waiter)) data.del(key);
  return false;
}

// Returns whether the waiter listens. A key that is kept for a while after its release gets no reservation: the waiter
// asks when it ends, as it then knows.
function invite(
  server: OperationContext,
  key: string,
  { waiter, isKept }: { readonly waiter: string; readonly isKept: boolean },
): boolean {
  const { data, lives, publish, attempt } = server;
  if (!isKept) {
    attempt(() => {
      data.zadd(key, reservedFor(waiter), millisecondsOf(server) + lives.reservation);
      settle(server, key);
    });
  }
  if (publish(waiter, key) > 0) return true;
  if (!isKept) {
    attempt(() => {
      data.zrem(key, reservedFor(waiter));
      settle(server, key);
    });
  }
  return false;
}
