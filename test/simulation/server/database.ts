/** An error that a server answers with. Recognized by its name, like that of the real client. */
export class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

const OOM = `OOM command not allowed when used memory > 'maxmemory'.`;
const READONLY = `READONLY You can't write against a read only replica.`;

interface Entry<T> {
  readonly value: T;
  /** On the server's wall clock, in milliseconds; `Infinity` without expiry. */
  expiresAt: number;
}

/** Fencing counters have numbers for names. */
type Hash = Map<string | number, string>;

export interface DatabaseWatch {
  readonly expired: (value: string) => void;
  readonly set: (value: string) => void;
  readonly added: (key: string, member: string) => void;
  readonly fieldSet: (field: string, before: string | undefined) => void;
}

type Value = string | Hash | Map<string, number>;

/**
 * The keys of one server, and the few commands that the library uses. Keys of the wrong type are not modelled; the
 * integration tests cover them.
 */
export class Database {
  isFull = false;
  isReadOnly = false;
  watch: DatabaseWatch | undefined;
  /** After the first write, full memory no longer stops a script. */
  private dirty = false;

  constructor(
    private readonly wall: () => number,
    private entries = new Map<string, Entry<Value>>(),
  ) {}

  begin(): void {
    this.dirty = false;
  }

  /** A copy, as on a replica or in a file on disk. */
  copy(): Map<string, Entry<Value>> {
    const copyOf = (value: Value): Value =>
      typeof value === 'string' ? value : new Map<string, never>(value as never);
    return new Map([...this.entries].map(([key, { value, expiresAt }]) => [key, { value: copyOf(value), expiresAt }]));
  }

  keys(): string[] {
    return [...this.entries.keys()].filter((key) => this.alive(key));
  }

  clear(): void {
    this.entries.clear();
  }

  forget(key: string): boolean {
    return this.entries.delete(key);
  }

  get(key: string): string | undefined {
    const value = this.alive(key);
    return typeof value === 'string' ? value : undefined;
  }

  exists(key: string): boolean {
    return this.alive(key) !== undefined;
  }

  /** Milliseconds; -1 without expiry, -2 without a key. */
  pttl(key: string): number {
    if (!this.exists(key)) return -2;
    const { expiresAt } = this.entries.get(key) as Entry<Value>;
    return expiresAt === Infinity ? -1 : Math.max(0, expiresAt - this.wall());
  }

  set(key: string, value: string, ttl: number): void {
    this.grow();
    this.entries.set(key, { value, expiresAt: this.wall() + ttl });
    this.watch?.set(value);
  }

  del(key: string): void {
    this.write();
    this.entries.delete(key);
  }

  pexpire(key: string, ttl: number): void {
    this.write();
    if (!this.exists(key)) return;
    const entry = this.entries.get(key) as Entry<Value>;
    entry.expiresAt = this.wall() + ttl;
    if (ttl <= 0) this.entries.delete(key);
  }

  /** Never to an earlier end. */
  prolong(key: string, ttl: number): void {
    this.write();
    const left = this.pttl(key);
    if (left !== -1 && left < ttl) this.pexpire(key, ttl);
  }

  hget(key: string, field: string | number): string | undefined {
    return (this.alive(key) as Hash | undefined)?.get(field);
  }

  hset(key: string, field: string | number, value: string): void {
    this.grow();
    const hash = (this.alive(key) as Hash | undefined) ?? new Map<string | number, string>();
    if (typeof field === 'string') this.watch?.fieldSet(field, hash.get(field));
    hash.set(field, value);
    if (!this.entries.has(key)) this.entries.set(key, { value: hash, expiresAt: Infinity });
  }

  zadd(key: string, member: string, score: number): void {
    this.grow();
    const scores = this.scoresOf(key) ?? new Map<string, number>();
    if (!scores.has(member)) this.watch?.added(key, member);
    scores.set(member, score);
    if (!this.entries.has(key)) this.entries.set(key, { value: scores, expiresAt: Infinity });
  }

  zscore(key: string, member: string): number | undefined {
    return this.scoresOf(key)?.get(member);
  }

  /** Members and scores, smallest score first; among equals, the first by name. */
  zrange(key: string): readonly (readonly [string, number])[] {
    return [...(this.scoresOf(key) ?? [])].sort((one, other) => (isBefore(one, other) ? -1 : 1));
  }

  zremUpTo(key: string, score: number): void {
    this.write();
    for (const [member, other] of this.scoresOf(key) ?? []) if (other <= score) this.zrem(key, member);
  }

  zcard(key: string): number {
    return this.scoresOf(key)?.size ?? 0;
  }

  zrem(key: string, member: string): void {
    this.write();
    const scores = this.scoresOf(key);
    scores?.delete(member);
    if (scores?.size === 0) this.entries.delete(key);
  }

  hasMember(key: string, member: string): boolean {
    return this.scoresOf(key)?.has(member) ?? false;
  }

  /** Whether a member is there whose score is a moment that has not come. */
  hasLiveMember(key: string, member: string): boolean {
    return (this.scoresOf(key)?.get(member) ?? 0) > this.wall();
  }

  private scoresOf(key: string): Map<string, number> | undefined {
    const value = this.alive(key);
    return typeof value === 'string' ? undefined : (value as Map<string, number> | undefined);
  }

  private alive(key: string): Value | undefined {
    const entry = this.entries.get(key);
    if (!entry) return undefined;
    if (this.wall() <= entry.expiresAt) return entry.value;
    this.entries.delete(key);
    if (typeof entry.value === 'string') this.watch?.expired(entry.value);
    return undefined;
  }

  private grow(): void {
    if (this.isFull && !this.dirty && !this.isReadOnly) throw new ReplyError(OOM);
    this.write();
  }

  private write(): void {
    if (this.isReadOnly) throw new ReplyError(READONLY);
    this.dirty = true;
  }
}

function isBefore([name, score]: [string, number], [otherName, otherScore]: [string, number]): boolean {
  return score < otherScore || (score === otherScore && name < otherName);
}

/** Like `redis.pcall`: an error that does not end the script. */
export function protect<T>(command: () => T): T | undefined {
  try {
    return command();
  } catch (error) {
    if (error instanceof ReplyError) return undefined;
    throw error;
  }
}
