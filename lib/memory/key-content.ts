import { holderFrom, REVOKED } from '../core/holder.js';
import { GRANTED, GRANTED_WITH_WAITERS, type GrantedReply, type HeldReply } from '../core/master.interface.js';
import type { OperationContext } from './operation-context.interface.js';

/** The members of a shared key that have not expired. */
export interface SharedKey {
  /** When each member ends, on the server's clock in milliseconds. */
  readonly ends: ReadonlyMap<string, number>;
  /** Number of members with a token. The others are reservations. */
  readonly holders: number;
  /** When the last holder ends; without a holder, when the last reservation ends. */
  readonly till: number;
}

/** What a key holds: the token or reservation of an exclusive holder, or shared holders, or nothing. */
export interface KeyContent {
  readonly owner?: string | undefined;
  readonly shared?: SharedKey;
}

/** The value that replaces a token in a key that is reserved for the waiter that was notified. */
export function reservedFor(waiter: string): string {
  return `reserved for ${waiter}`;
}

/** The member of a shared key that has this token, and the member of a queue that waits for a shared key. */
export function sharedMember(name: string): string {
  return `shared ${name}`;
}

/** The time of a server in whole milliseconds. */
export function millisecondsOf(server: OperationContext): number {
  return Math.floor(server.now());
}

export function contentOf(server: OperationContext, key: string): KeyContent {
  const { data } = server;
  const owner = data.get(key);
  if (owner !== undefined) return { owner };
  const members = data.zrange(key);
  if (members.length === 0) return {};
  const now = millisecondsOf(server);
  const ends = new Map(members.filter(([, end]) => end > now));
  const last = [...ends.keys()].findLast(isHolder) ?? [...ends.keys()].at(-1) ?? '';
  return { shared: { ends, holders: [...ends.keys()].filter(isHolder).length, till: ends.get(last) ?? now } };
}

/**
 * Removes the members of a sorted set that have expired. The set then lives exactly as long as its last member.
 * Protocol 11.1.
 */
export function settle(server: OperationContext, key: string): void {
  const { data } = server;
  const now = millisecondsOf(server);
  data.zremUpTo(key, now);
  const last = data.zrange(key).at(-1);
  const left = last && last[1] - now; // @mutant shared-key-expiry-only-grows-in-memory
  if (left !== undefined) data.pexpire(key, left);
}

/**
 * The longest remaining time of the keys that are held, `undefined` if one of them never expires, and the holder of the
 * first of them.
 */
export function longestOf(server: OperationContext, keys: readonly string[], isHeld: readonly boolean[]): HeldReply {
  const held = keys.filter((_, index) => isHeld[index]).map((key) => ({ key, ...contentOf(server, key) }));
  const times = held.map(({ key, shared }) => (shared ? shared.till - millisecondsOf(server) : server.data.pttl(key)));
  const remaining = Math.min(...times) < 0 ? undefined : Math.max(...times);
  return heldFor(remaining, held[0]);
}

/** The answer to a request that a key refuses. */
export function heldFor(remaining: number | undefined, { owner = '', shared }: KeyContent = {}): HeldReply {
  const holder = holderFrom(owner);
  return {
    ...{ kind: 'held', remaining },
    ...(holder && { holder }),
    ...(owner === REVOKED && { revoked: true }),
    ...(shared && { sharedBy: shared.holders }),
  };
}

export function granted(hasWaiters: boolean): GrantedReply {
  return hasWaiters ? GRANTED_WITH_WAITERS : GRANTED;
}

function isHolder(member: string): boolean {
  return member.startsWith(sharedMember(''));
}
