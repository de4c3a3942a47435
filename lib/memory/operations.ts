import {
  type AcquireRequest,
  type DrawRequest,
  type ExtendRequest,
  GRANTED,
  type GrantedReply,
  HEALED,
  type HeldReply,
  type InspectRequest,
  type LeaveRequest,
  type PickRequest,
  type ProbeRequest,
  type ReleaseRequest,
  type WantRequest,
} from '../core/master.interface.js';
import { contentOf, granted, longestOf, reservedFor } from './key-content.js';
import type { OperationContext } from './operation-context.interface.js';
import { pick } from './permit-operations.js';
import { prolong, share, unshare, want } from './shared-operations.js';
import { dropReservation, enqueue, leaveQueues, memberOf, queueUp, wake } from './waiting.js';

// The operations of the scripts in lib/redis/scripts, written a second time in another language. Masters in memory and
// the servers of the simulation share them. A change of a script must change its operation here, too: on the same
// traces, test/simulation/model.spec.ts compares the answers and the data of a real server with those of this model.

/** Expiry of the key that a probe writes, in milliseconds, as in the scripts. */
const PROBE_LIFE = 1_000;

/** A request that is about keys. The requests for the state are in state-operations.ts. */
export type KeyOperation =
  | AcquireRequest
  | PickRequest
  | WantRequest
  | ExtendRequest
  | DrawRequest
  | ReleaseRequest
  | LeaveRequest
  | InspectRequest
  | ProbeRequest;

/** Carries out one request. */
export function carryOut(server: OperationContext, request: KeyOperation): GrantedReply | HeldReply {
  switch (request.op) {
    case 'acquire': {
      const { sharing } = request;
      return sharing ? share(server, { ...request, sharing }) : acquire(server, request);
    }
    case 'pick':
      return pick(server, request);
    case 'want':
      return want(server, request);
    case 'extend':
      return request.isShared ? prolong(server, request) : extend(server, request);
    case 'draw':
      return draw(server, request);
    case 'release':
      return request.isShared ? unshare(server, request) : release(server, request);
    case 'leave':
      return leave(server, request);
    case 'inspect':
      return inspect(server, request);
    case 'probe':
      return probe(server, request);
  }
}

// Protocol 4.2
export function acquire(server: OperationContext, { keys, token, ttl, queue }: Acquisition): GrantedReply | HeldReply {
  const reserved = queue && reservedFor(queue.waiter);
  const isHeld = keys.map((key) => isHeldBeside(server, key, [token, reserved])); // @mutant exclusive-beside-shared-holders-in-memory
  if (isHeld.includes(true)) {
    const held = longestOf(server, keys, isHeld);
    if (queue) queueUp(server, keys, isHeld, { ...queue, isShared: false });
    return held;
  }
  for (const key of keys) server.data.set(key, token, ttl);
  return granted(queue !== undefined && leaveQueues(server, { ...queue, isShared: false }));
}

// Protocol 6.2
export function extend(
  server: OperationContext,
  { keys, token, ttl }: Pick<ExtendRequest, 'keys' | 'token' | 'ttl'>,
): GrantedReply | HeldReply {
  const { data } = server;
  const isHeld = keys.map((key) => isHeldBeside(server, key, [token])); // @mutant extension-without-owner-check-in-memory, extension-over-shared-holders-in-memory
  if (isHeld.includes(true)) return longestOf(server, keys, isHeld);
  let isHealed = false;
  for (const key of keys) {
    if (data.exists(key)) continue;
    data.set(key, token, ttl);
    isHealed = true;
  }
  for (const key of keys) data.pexpire(key, ttl);
  return isHealed ? HEALED : GRANTED;
}

/** Grants with the largest counter as `fence`. Protocol 9.1. */
export function draw(
  server: OperationContext,
  { keys, token, counters: fields, atLeast, isFirst }: Pick<DrawRequest, 'keys' | 'token' | keyof Raise>,
): GrantedReply | HeldReply {
  const { data, counters } = server;
  const isOurs = keys.every((key) => contentOf(server, key).owner === token); // @mutant draw-for-any-holder-in-memory
  if (!isOurs) return { kind: 'held', remaining: undefined };
  const step = isFirst ? 1 : 0;
  const drawn = Math.max(atLeast, ...fields.map((field) => Number(data.hget(counters, field) ?? 0) + step));
  for (const field of fields) data.hset(counters, field, String(drawn));
  return { ...GRANTED, fence: drawn };
}

// Protocol 7.1 and 7.4
export function release(
  server: OperationContext,
  { keys, queues, token, keepFor }: Pick<ReleaseRequest, 'keys' | 'queues' | 'token' | 'keepFor'>,
): GrantedReply {
  const { data } = server;
  let hasWaiters = false;
  for (const [index, key] of keys.entries()) {
    const { owner, shared } = contentOf(server, key);
    const isOurs = owner === token; // @mutant unconditional-delete-in-memory
    if (shared) continue;
    if (isOurs || owner === undefined) {
      if (isOurs && keepFor === 0) data.del(key);
      if (isOurs && keepFor !== 0) data.pexpire(key, keepFor);
      if (wake(server, key, queues[index] as string)) hasWaiters = true;
    } else if (owner.startsWith(reservedFor(''))) {
      hasWaiters = true;
    }
  }
  return granted(hasWaiters);
}

// Protocol 5.7
export function leave(
  server: OperationContext,
  { keys, queues, waiter, isShared = false, nextWaited: waited }: Omit<LeaveRequest, 'op'>,
): GrantedReply {
  const { data, attempt } = server;
  keys.forEach((key, index) => {
    const queue = queues[index] as string;
    const member = memberOf({ waiter, isShared });
    // The place of a process whose next waiter takes it over is empty at no moment.
    if (waited === undefined) attempt(() => data.zrem(queue, member));
    else enqueue(server, queue, { member, waited, isNew: false });
    dropReservation(server, key, { waiter, isShared });
    // Those behind it may be able to take the key, even if it had no reservation.
    if (data.get(key) === undefined) wake(server, key, queue);
  });
  return GRANTED;
}

export function inspect(
  server: OperationContext,
  { keys, queues }: Pick<InspectRequest, 'keys' | 'queues'>,
): GrantedReply | HeldReply {
  const isHeld = keys.map((key) => isHeldBeside(server, key, []));
  if (!isHeld.includes(true)) return GRANTED;
  return {
    ...longestOf(server, keys, isHeld),
    waiting: Math.max(0, ...(queues ?? []).map((queue) => server.data.zcard(queue))),
  };
}

export function probe({ data }: OperationContext, { keys }: Pick<ProbeRequest, 'keys'>): GrantedReply {
  for (const key of keys) {
    data.set(key, '', PROBE_LIFE);
    data.del(key);
  }
  return GRANTED;
}

type Acquisition = Pick<AcquireRequest, 'keys' | 'token' | 'ttl' | 'queue'>;
type Raise = Pick<DrawRequest, 'counters' | 'atLeast' | 'isFirst'>;

/** Whether a key has shared holders, or an exclusive one other than these. */
function isHeldBeside(server: OperationContext, key: string, owners: readonly (string | undefined)[]): boolean {
  const { owner, shared } = contentOf(server, key);
  return shared !== undefined || (owner !== undefined && !owners.includes(owner));
}
