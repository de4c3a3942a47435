import { type Clock, elapsedSince, type Instant } from '../core/clock.js';
import type { Commands } from './operations.js';

interface Entry {
  value: string;
  since: Instant;
  ttl: number;
}

/** This many keys are checked for expiry at each acquisition, so that forgotten keys do not accumulate. */
const SWEEP = 4;

/** The keys, hashes and sorted sets of a master in memory. Only keys expire. */
export class MemoryDatabase implements Commands {
  private readonly entries = new Map<string, Entry>();
  private readonly hashes = new Map<string, Map<number, string>>();
  private readonly sets = new Map<string, Map<string, number>>();
  private sweeper: IterableIterator<[string, Entry]> | undefined;

  constructor(private readonly clock: Clock) {}

  /** Number of keys that have not expired. */
  get size(): number {
    for (const key of [...this.entries.keys()]) this.pttl(key);
    return this.entries.size;
  }

  /** Number of sorted sets with a member. */
  get sortedSets(): number {
    return this.sets.size;
  }

  /** Forgets all keys and hashes. */
  clear(): void {
    this.entries.clear();
    this.hashes.clear();
  }

  get(key: string): string | undefined {
    return this.exists(key) ? this.entries.get(key)?.value : undefined;
  }

  exists(key: string): boolean {
    return this.sets.has(key) || this.pttl(key) > 0;
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
    const scores = this.sets.get(key) ?? new Map<string, number>();
    this.sets.set(key, scores);
    if (!scores.has(member)) scores.set(member, score);
  }

  zcard(key: string): number {
    return this.sets.get(key)?.size ?? 0;
  }

  zrem(key: string, member: string): void {
    const scores = this.sets.get(key);
    scores?.delete(member);
    if (scores?.size === 0) this.sets.delete(key);
  }

  zpopmin(key: string): string | undefined {
    const [first] = [...(this.sets.get(key) ?? [])].sort(([, one], [, other]) => one - other);
    if (!first) return undefined;
    const [member] = first;
    this.zrem(key, member);
    return member;
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
}
