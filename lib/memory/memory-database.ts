import { holderFrom, REVOKED } from '../redlock/holder.js';
import {
  GRANTED,
  GRANTED_WITH_WAITERS,
  type GrantedReply,
  type HeldReply,
  RESERVED,
  SHARED_MARK,
} from '../masters/master.interface.js';
import { WRITER } from '../settings/keyspace.js';
import { type Clock, elapsedSince, type Instant } from '../redlock/clock.js';

interface Commands {
  get(key: string): string | undefined;
  exists(key: string): boolean;
  // Milliseconds until the key expires; negative if it never does.
  pttl(key: string): number;
  // `ttl` in milliseconds.
  set(key: string, value: string, ttl: number): void;
  del(key: string): void;
  pexpire(key: string, ttl: number): void;
  // The same, but never to an earlier end.
  prolong(key: string, ttl: number): void;
  hget(key: string, field: number): string | undefined;
  hset(key: string, field: number, value: string): void;
  zadd(key: string, member: string, score: number): void;
  zscore(key: string, member: string): number | undefined;
  zrem(key: string, member: string): void;
  zremUpTo(key: string, score: number): void;
  zrange(key: string): readonly (readonly [member: string, score: number])[];
  zcard(key: string): number;
}

export interface OperationContext {
  readonly data: Commands;
  readonly counters: string;
  // In milliseconds. `reservation`: the time of which the fraction of a score is a share.
  readonly lives: { readonly reservation: number; readonly queue: number; readonly writer: number };
  // In milliseconds.
  readonly now: () => number;
  // By the wall clock, since the epoch.
  readonly microseconds: () => number;
  readonly publish: (waiter: string, key: string) => number;
  // The failure of such a command does not end the operation.
  readonly attempt: <T>(command: () => T) => T | undefined;
}

interface SharedKey {
  // By the server's clock, in milliseconds.
  readonly ends: ReadonlyMap<string, number>;
  // Members with a token. The others are reservations.
  readonly holders: number;
  // When the last holder ends; without a holder, when the last reservation ends.
  readonly till: number;
}

// At most one of the two: the token or reservation of an exclusive holder, or shared holders.
interface KeyContent {
  readonly owner?: string | undefined;
  readonly shared?: SharedKey;
}

export function reservedFor(waiter: string): string {
  return RESERVED + waiter;
}

export function sharedMember(name: string): string {
  return SHARED_MARK + name;
}

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

// The set then lives exactly as long as its last member.
// Protocol 11.1
export function settle(server: OperationContext, key: string): void {
  const { data } = server;
  const now = millisecondsOf(server);
  data.zremUpTo(key, now);
  const last = data.zrange(key).at(-1);
  const left = last && last[1] - now; // @mutant shared-key-expiry-only-grows-in-memory
  if (left !== undefined) data.pexpire(key, left);
}

// `remaining` is `undefined` if one of the keys never expires. The holder is that of the first of them.
export function longestOf(server: OperationContext, keys: readonly string[], isHeld: readonly boolean[]): HeldReply {
  const held = keys.filter((_, index) => isHeld[index]).map((key) => ({ key, ...contentOf(server, key) }));
  const times = held.map(({ key, shared }) => (shared ? shared.till - millisecondsOf(server) : server.data.pttl(key)));
  const remaining = Math.min(...times) < 0 ? undefined : Math.max(...times);
  return heldFor(remaining, held[0]);
}

export function heldFor(remaining: number | undefined, { owner = '', shared }: KeyContent = {}): HeldReply {
  const holder = holderFrom(owner);
  return {
    kind: 'held',
    remaining,
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

type Scores = Map<string, number>;

interface Entry {
  value: string | Scores;
  since: Instant;
  ttl: number;
}

// So many keys are checked for expiry at each acquisition, so that forgotten keys do not accumulate.
const SWEEP = 4;
// What the members of a shared key begin with, unlike those of a queue.
const SHARED_KEY = new RegExp(`^(?:${SHARED_MARK}|${RESERVED})`);

// Keys and sorted sets expire as on a server; hashes do not.
export class MemoryDatabase implements Commands {
  private readonly entries = new Map<string, Entry>();
  private readonly hashes = new Map<string, Map<number, string>>();
  private sweeper: IterableIterator<[string, Entry]> | undefined;

  constructor(private readonly clock: Clock) {}

  get size(): number {
    const isLock = (key: string): boolean => !this.isQueue(key) && !key.endsWith(WRITER);
    return this.names.filter((key) => isLock(key) && (this.get(key) !== undefined || this.isShared(key))).length;
  }

  get queues(): number {
    return this.names.filter((key) => this.isQueue(key)).length;
  }

  // Queues stay, because processes join them once.
  clear(): void {
    for (const key of this.names) if (!this.isQueue(key)) this.entries.delete(key);
    this.hashes.clear();
  }

  get(key: string): string | undefined {
    const value = this.alive(key)?.value;
    return typeof value === 'string' ? value : undefined;
  }

  exists(key: string): boolean {
    return this.alive(key) !== undefined;
  }

  pttl(key: string): number {
    const entry = this.entries.get(key);
    if (!entry) return 0;
    const remaining = entry.ttl - elapsedSince(this.clock, entry.since);
    if (remaining > 0) return remaining;
    this.entries.delete(key);
    return 0;
  }

  set(key: string, value: string, ttl: number): void {
    this.entries.set(key, { value, since: this.clock.read(), ttl });
  }

  del(key: string): void {
    this.entries.delete(key);
  }

  pexpire(key: string, ttl: number): void {
    const entry = this.entries.get(key);
    if (entry) Object.assign(entry, { since: this.clock.read(), ttl });
  }

  prolong(key: string, ttl: number): void {
    if (this.pttl(key) < ttl) this.pexpire(key, ttl);
  }

  hget(key: string, field: number): string | undefined {
    return this.hashes.get(key)?.get(field);
  }

  hset(key: string, field: number, value: string): void {
    const hash = this.hashes.get(key) ?? new Map<number, string>();
    this.hashes.set(key, hash);
    hash.set(field, value);
  }

  zadd(key: string, member: string, score: number): void {
    this.scoresOf(key, { isNew: true }).set(member, score);
  }

  zscore(key: string, member: string): number | undefined {
    return this.scoresOf(key).get(member);
  }

  zcard(key: string): number {
    return this.scoresOf(key).size;
  }

  zrem(key: string, member: string): void {
    const scores = this.scoresOf(key);
    if (scores.delete(member) && scores.size === 0) this.entries.delete(key);
  }

  zremUpTo(key: string, score: number): void {
    for (const [member, other] of this.scoresOf(key)) if (other <= score) this.zrem(key, member);
  }

  zrange(key: string): readonly (readonly [string, number])[] {
    return [...this.scoresOf(key)].sort(([, one], [, other]) => one - other);
  }

  sweep(): void {
    for (let i = 0; i < SWEEP; i++) {
      this.sweeper ??= this.entries.entries();
      const next = this.sweeper.next();
      if (next.done) this.sweeper = undefined;
      else this.pttl(next.value[0]);
    }
  }

  private get names(): readonly string[] {
    return [...this.entries.keys()];
  }

  private alive(key: string): Entry | undefined {
    return this.pttl(key) > 0 ? this.entries.get(key) : undefined;
  }

  // Everything else expires.
  private isQueue(key: string): boolean {
    return this.alive(key)?.ttl === Infinity;
  }

  private isShared(key: string): boolean {
    return this.zrange(key).some(([member]) => SHARED_KEY.test(member));
  }

  private scoresOf(key: string, { isNew = false } = {}): Scores {
    const value = this.alive(key)?.value;
    if (typeof value === 'object') return value;
    const scores: Scores = new Map();
    if (isNew) this.entries.set(key, { value: scores, since: this.clock.read(), ttl: Infinity });
    return scores;
  }
}
