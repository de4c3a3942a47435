import {
  GRANTED,
  type GrantedReply,
  HEALED,
  type HeldReply,
  type QueueTicket,
  type ReleaseRequest,
  type Sharing,
  type WantRequest,
} from '../core/master.interface.js';
import { contentOf, granted, heldFor, type KeyContent, millisecondsOf, reservedFor } from './key-content.js';
import { longestOf, settle, sharedMember } from './key-content.js';
import type { OperationContext } from './operation-context.interface.js';
import { arrivalIn, deferralOf } from './barriers.js';
import { leaveQueues, MOST_HOLDERS, queueUp, wake } from './waiting.js';

// What the scripts do with shared keys and barriers, as in operations.ts.

interface SharedAcquisition {
  readonly keys: readonly string[];
  readonly token: string;
  readonly ttl: number;
  readonly sharing: Sharing;
  readonly queue?: QueueTicket | undefined;
}

/** Why a key refuses a shared holder. */
interface Refusal {
  /** Negative if the key never expires. */
  readonly remaining: number;
  readonly content: KeyContent;
}

/** Adds a shared holder to all keys, or to none. Protocol 11.2. */
export function share(server: OperationContext, request: SharedAcquisition): GrantedReply | HeldReply {
  const { keys, token, ttl, queue, sharing } = request;
  const refusals = keys.map((key, index) => refusalOf(server, request, key, sharing.barriers[index] as string));
  const place = queue && { queues: queue.queues, waiter: queue.waiter, isShared: true };
  const [first, ...others] = refusals.filter((refusal) => refusal !== undefined);
  if (first) {
    const times = [first, ...others].map(({ remaining }) => remaining);
    if (place) {
      const isHeld = refusals.map((refusal) => refusal !== undefined);
      queueUp(server, keys, isHeld, { ...place, waited: sharing.waited });
      // The older request may sleep: its reservation has ended, and no release follows.
      keys.forEach((key, index) => {
        if (isHeld[index] && !server.data.exists(key)) wake(server, key, place.queues[index] as string);
      });
    }
    return heldFor(Math.min(...times) < 0 ? undefined : Math.max(...times), first.content);
  }
  for (const key of keys) enter(server, key, { token, ttl, waiter: queue?.waiter });
  if (!place) return GRANTED;
  const hasWaiters = leaveQueues(server, place);
  // The processes behind this one in the queue may have the key, too.
  keys.forEach((key, index) => wake(server, key, place.queues[index] as string)); // @mutant wake-chain-broken-1-in-memory
  return granted(hasWaiters);
}

/**
 * Refreshes a shared holder, and puts it back where it is missing. Refuses if a key has an exclusive holder.
 * Protocol 11.3.
 */
export function prolong(
  server: OperationContext,
  { keys, token, ttl }: Pick<SharedAcquisition, 'keys' | 'token' | 'ttl'>,
): GrantedReply | HeldReply {
  const { data } = server;
  const contents = keys.map((key) => contentOf(server, key));
  const isHeld = contents.map(({ owner }) => owner !== undefined); // @mutant shared-extension-over-a-string-in-memory
  if (isHeld.includes(true)) return longestOf(server, keys, isHeld);
  const member = sharedMember(token);
  const isPresent = contents.map(({ shared }) => shared?.ends.has(member) ?? false);
  const now = millisecondsOf(server);
  const end = now + Math.ceil(ttl) + 1;
  for (const [index, key] of keys.entries()) {
    if (isPresent[index]) continue;
    data.zadd(key, member, end);
    settle(server, key);
  }
  for (const [index, key] of keys.entries()) {
    if (!isPresent[index]) continue;
    // A server that is out of memory refuses to begin with ZADD.
    data.pexpire(key, end - now);
    data.zadd(key, member, end);
    settle(server, key);
  }
  return isPresent.includes(false) ? HEALED : GRANTED;
}

/** Removes a shared holder. Protocol 11.4. */
export function unshare(
  server: OperationContext,
  { keys, queues, token }: Pick<ReleaseRequest, 'keys' | 'queues' | 'token'>,
): GrantedReply {
  let hasWaiters = false;
  for (const [index, key] of keys.entries()) {
    const { owner, shared } = contentOf(server, key);
    if (owner !== undefined) {
      if (owner.startsWith(reservedFor(''))) hasWaiters = true;
      continue;
    }
    if (shared) {
      server.data.zrem(key, sharedMember(token)); // @mutant shared-key-deleted-in-memory
      settle(server, key);
    }
    if (wake(server, key, queues[index] as string)) hasWaiters = true;
  }
  return granted(hasWaiters);
}

/** Lets a waiter stand at some barriers, or leave them. Protocol 11.6. */
export function want(
  server: OperationContext,
  { barriers, waiter, waited }: Pick<WantRequest, 'barriers' | 'waiter' | 'waited'>,
): GrantedReply {
  const { data, lives } = server;
  const now = millisecondsOf(server);
  for (const barrier of barriers) {
    for (const [entry] of data.zrange(barrier)) if (arrivalIn(entry).waiter === waiter) data.zrem(barrier, entry);
    if (waited !== undefined) data.zadd(barrier, `${(now - waited).toFixed(0)} ${waiter}`, now + lives.barrier);
    settle(server, barrier);
  }
  return GRANTED;
}

function enter(
  server: OperationContext,
  key: string,
  { token, ttl, waiter }: { readonly token: string; readonly ttl: number; readonly waiter: string | undefined },
): void {
  const { data } = server;
  const { owner, shared } = contentOf(server, key);
  // The reservation of an exclusive waiter of the same process.
  if (owner !== undefined) data.del(key);
  data.zadd(key, sharedMember(token), millisecondsOf(server) + Math.ceil(ttl) + 1);
  if (waiter !== undefined && shared?.ends.has(reservedFor(waiter))) data.zrem(key, reservedFor(waiter));
  settle(server, key);
}

function refusalOf(
  server: OperationContext,
  { token, queue, sharing }: SharedAcquisition,
  key: string,
  barrier: string,
): Refusal | undefined {
  const content = contentOf(server, key);
  const { owner, shared } = content;
  const reservation = queue && reservedFor(queue.waiter);
  const isOurs = owner === reservation; // @mutant shared-beside-an-exclusive-holder-in-memory
  if (owner !== undefined) return isOurs ? undefined : { remaining: server.data.pttl(key), content };
  if (shared?.ends.has(sharedMember(token))) return undefined;
  const now = millisecondsOf(server);
  const till = deferralOf(server, barrier, { waiter: queue?.waiter, since: now - sharing.waited })?.till;
  const isInvited = reservation !== undefined && (shared?.ends.has(reservation) ?? false);
  const size = (shared?.ends.size ?? 0) - (isInvited ? 1 : 0);
  if (till === undefined && size < MOST_HOLDERS) return undefined;
  const end = shared && shared.holders > 0 ? shared.till : (till ?? shared?.till ?? now);
  return { remaining: end - now, content };
}
