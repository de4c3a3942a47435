import type { GrantedReply, HeldReply, PickRequest } from '../core/master.interface.js';
import { heldFor, reservedFor } from './key-content.js';
import type { OperationContext } from './operation-context.interface.js';
import { leaveQueues, queueUp } from './waiting.js';

/**
 * Takes one of the keys: the one that has the token already, that is reserved for the waiter, or the first free one.
 * Protocol 11.10.
 */
export function pick(
  server: OperationContext,
  { keys, token, ttl, queue }: Pick<PickRequest, 'keys' | 'token' | 'ttl' | 'queue'>,
): GrantedReply | HeldReply {
  const { data } = server;
  const owners = keys.map((key) => data.get(key));
  const place = queue && { queues: queue.queues.slice(0, 1), waiter: queue.waiter, isShared: false };
  const isFree = (key: string): boolean => !data.exists(key);
  const own = owners.indexOf(token);
  const reserved = queue ? owners.indexOf(reservedFor(queue.waiter)) : -1;
  const picked = own >= 0 ? own : reserved >= 0 ? reserved : keys.findIndex(isFree);
  if (picked >= 0) {
    data.set(keys[picked] as string, token, ttl);
    const hasWaiters = place !== undefined && leaveQueues(server, place);
    return { kind: 'granted', picked, ...(hasWaiters && { hasWaiters }) };
  }
  if (queue && place) queueUp(server, keys.slice(0, 1), [true], { ...place, waited: queue.waited });
  return soonestOf(server, keys);
}

/** The shortest remaining time of the keys. Those that are only reserved count if all are. */
function soonestOf({ data }: OperationContext, keys: readonly string[]): HeldReply {
  const held = keys.map((key) => ({ owner: data.get(key), left: data.pttl(key) }));
  const isReserved = ({ owner }: { readonly owner: string | undefined }): boolean =>
    owner?.startsWith(reservedFor('')) ?? true;
  const taken = held.filter((one) => !isReserved(one));
  const known = (taken.length > 0 ? taken : held).filter(({ owner }) => owner !== undefined);
  const rank = ({ left }: { readonly left: number }): number => (left < 0 ? Infinity : left);
  const [soonest] = [...known].sort((one, other) => rank(one) - rank(other));
  if (!soonest) return { kind: 'held', remaining: undefined };
  return heldFor(soonest.left < 0 ? undefined : soonest.left, soonest);
}
