import {
  contentOf,
  millisecondsOf,
  type OperationContext,
  reservedFor,
  settle,
  sharedMember,
} from './memory-database.js';
import { WRITER } from '../settings/keyspace.js';
import { MAX_SHARED_HOLDERS, RESERVATION_SCALE, SHARED_MARK } from '../masters/master.interface.js';

interface Deferral {
  readonly remaining: number;
  readonly writer: string;
}

// Of a writer that came before that.
export function deferralOf({ data }: OperationContext, writerKey: string, since: number): Deferral | undefined {
  const arrival = arrivalIn(data.get(writerKey));
  if (!arrival || arrival.since > since) return undefined; // @mutant writer-key-not-looked-at-in-memory
  return { remaining: data.pttl(writerKey), writer: arrival.writer };
}

export function arrivalIn(value: string | undefined): { readonly since: number; readonly writer: string } | undefined {
  const [, since, writer] = /^(-?\d+) (.*)$/s.exec(value ?? '') ?? [];
  return writer === undefined ? undefined : { since: Number(since), writer };
}

// Dead waiters that one release skips, as in the scripts.
const MAX_SKIPPED = 100;

interface Ticket {
  readonly queues: readonly string[];
  readonly waiter: string;
  readonly isShared: boolean;
}

interface Arrival extends Ticket {
  readonly waited: number;
  readonly reserveFor: number;
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
      enqueue(server, queue, arrival);
      // The older request, for which a shared one is deferred at a free key, may sleep: its reservation has ended, and no
      // release follows.
      if (arrival.isShared && !server.data.exists(key)) wake(server, key, queue);
    } else if (dropReservation(server, key, arrival)) {
      wake(server, key, queue);
    }
  });
}

// A member that is in the queue already keeps its age.
function enqueue(server: OperationContext, queue: string, arrival: Arrival): void {
  const { data, attempt, lives } = server;
  const member = memberOf(arrival);
  const since = Math.floor(data.zscore(queue, member) ?? millisecondsOf(server) - Math.floor(arrival.waited));
  attempt(() => data.zadd(queue, member, since + arrival.reserveFor / RESERVATION_SCALE));
  attempt(() => data.pexpire(queue, lives.queue));
}

export function leaveQueues({ data, attempt }: OperationContext, ticket: Ticket): boolean {
  let hasWaiters = false;
  for (const queue of ticket.queues) {
    attempt(() => data.zrem(queue, memberOf(ticket)));
    if (data.exists(queue)) hasWaiters = true;
  }
  return hasWaiters;
}

export function memberOf({ waiter, isShared }: Pick<Ticket, 'waiter' | 'isShared'>): string {
  return isShared ? sharedMember(waiter) : waiter;
}

export function dropReservation(
  server: OperationContext,
  key: string,
  { waiter, isShared }: Pick<Ticket, 'waiter' | 'isShared'>,
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
  const { data, attempt, lives } = server;
  const { owner, shared } = contentOf(server, key);
  let members = shared?.ends.size ?? 0;
  let isHeard = false;
  for (let skipped = 0; skipped < MAX_SKIPPED; skipped++) {
    const next = nextIn(server, queue);
    if (next === 'none') return isHeard;
    if (next === 'notified') return true;
    const { member, reader } = next;
    // Protocol 5.4
    const life = Math.floor((next.score - Math.floor(next.score)) * lives.reservation);
    if (members >= (reader === undefined ? 1 : MAX_SHARED_HOLDERS)) return true;
    const isPopped = attempt(() => (data.zrem(queue, member), true));
    if (!isPopped) return isHeard;
    if (reader === undefined) {
      if (offer(server, key, { waiter: member, life })) return true;
    } else if (invite(server, key, { waiter: reader, life: owner === undefined ? life : undefined })) {
      isHeard = true; // @mutant wake-chain-broken-2-in-memory
      members++;
    }
  }
  return isHeard;
}

interface NextWaiter {
  readonly member: string;
  readonly score: number;
  readonly reader: string | undefined;
}

// Each request of a waiter measures its age anew, so a writer may precede the head by its key and follow it in the queue.
function nextIn(server: OperationContext, queue: string): NextWaiter | 'none' | 'notified' {
  const { data } = server;
  const [head, score] = data.zrange(queue)[0] ?? [undefined, 0];
  if (head === undefined) return 'none';
  const reader = head.startsWith(SHARED_MARK) ? head.slice(SHARED_MARK.length) : undefined;
  const deferral = reader === undefined ? undefined : deferralOf(server, queue + WRITER, score);
  if (!deferral) return { member: head, score, reader };
  const member = deferral.writer;
  const arrived = data.zscore(queue, member);
  return arrived === undefined ? 'notified' : { member, score: arrived, reader: undefined };
}

interface Invitation {
  readonly waiter: string;
  // Milliseconds for which the key is reserved. A key that is kept for a while after its release is not: the waiter asks
  // when it ends, as it then knows.
  readonly life: number | undefined;
}

// Returns whether the waiter listens.
function offer({ data, publish, attempt }: OperationContext, key: string, { waiter, life = 0 }: Invitation): boolean {
  if (!data.exists(key)) attempt(() => data.set(key, reservedFor(waiter), life));
  if (publish(waiter, key) > 0) return true;
  if (data.get(key) === reservedFor(waiter)) data.del(key);
  return false;
}

// Returns whether the waiter listens.
function invite(server: OperationContext, key: string, { waiter, life }: Invitation): boolean {
  const { data, publish, attempt } = server;
  if (life !== undefined) {
    attempt(() => {
      data.zadd(key, reservedFor(waiter), millisecondsOf(server) + life);
      settle(server, key);
    });
  }
  if (publish(waiter, key) > 0) return true;
  if (life !== undefined) {
    attempt(() => {
      data.zrem(key, reservedFor(waiter));
      settle(server, key);
    });
  }
  return false;
}
