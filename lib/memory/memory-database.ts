import { type Clock, elapsedSince, type Instant } from '../core/clock.js';
import type { Commands } from './operation-context.interface.js';

type Scores = Map<string, number>;

interface Entry {
  value: string | Scores;
  since: Instant;
  ttl: number;
}

/** This many keys are checked for expiry at each acquisition, so that forgotten keys do not accumulate. */
const SWEEP = 4;
/** What the members of a shared key begin with, unlike those of a barrier. */
const SHARED_KEY = /^(?:shared|reserved for) /;

/** The keys, hashes and sorted sets of a master in memory. Hashes do not expire. */
export class MemoryDatabase implements Commands {
  private readonly entries = new Map<string, Entry>();
  private readonly hashes = new Map<string, Map<number, string>>();
  private sweeper: IterableIterator<[string, Entry]> | undefined;

  constructor(private readonly clock: Clock) {}

  /** Number of keys that have not expired. */
  get size(): number {
    return this.names.filter((key) => !this.isQueue(key) && (this.get(key) !== undefined || this.isShared(key))).length;
  }

  /** Number of queues with a member. */
  get queues(): number {
    return this.names.filter((key) => this.isQueue(key)).length;
  }

  /** Forgets all keys and hashes. Queues stay, because processes join them once. */
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

  /** `0` if there is no such key. */
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

  zaddNew(key: string, member: string, score: number): void {
    const scores = this.scoresOf(key, { isNew: true });
    if (!scores.has(member)) scores.set(member, score);
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

  /** Removes some of the keys that have expired. */
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

  /** Everything else expires. */
  private isQueue(key: string): boolean {
    return this.alive(key)?.ttl === Infinity;
  }

  private isShared(key: string): boolean {
    return this.zrange(key).some(([member]) => SHARED_KEY.test(member));
  }

  /** @param isNew whether the sorted set is stored if there is none */
  private scoresOf(key: string, { isNew = false } = {}): Scores {
    const value = this.alive(key)?.value;
    if (typeof value === 'object') return value;
    const scores: Scores = new Map();
    if (isNew) this.entries.set(key, { value: scores, since: this.clock.read(), ttl: Infinity });
    return scores;
  }
}
