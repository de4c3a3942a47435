/** The commands that the operations use. */
export interface Commands {
  /** The value of a string; `undefined` if there is none. */
  get(key: string): string | undefined;
  exists(key: string): boolean;
  /** Milliseconds until the key expires; negative if it never does. */
  pttl(key: string): number;
  /** @param ttl in milliseconds */
  set(key: string, value: string, ttl: number): void;
  del(key: string): void;
  /** @param ttl in milliseconds */
  pexpire(key: string, ttl: number): void;
  hget(key: string, field: number): string | undefined;
  hset(key: string, field: number, value: string): void;
  /** Adds a member to a sorted set, or changes its score. */
  zadd(key: string, member: string, score: number): void;
  /** Adds a member to a sorted set, unless it is there. */
  zaddNew(key: string, member: string, score: number): void;
  zrem(key: string, member: string): void;
  /** Removes the members whose score is not larger. */
  zremUpTo(key: string, score: number): void;
  /** The members of a sorted set and their scores, smallest first. Empty if there is none. */
  zrange(key: string): readonly (readonly [member: string, score: number])[];
  /** Number of members. */
  zcard(key: string): number;
}

/** A server that carries out the operations. */
export interface OperationContext {
  readonly data: Commands;
  /** Name of the hash of fencing counters. */
  readonly counters: string;
  /** How long a key stays reserved for a notified waiter, and how long a queue or a barrier lives, in milliseconds. */
  readonly lives: { readonly reservation: number; readonly queue: number; readonly barrier: number };
  /** Time of the server, in milliseconds. */
  readonly now: () => number;
  /** Notifies a waiter. Returns the number of listeners. */
  readonly publish: (waiter: string, key: string) => number;
  /** Runs a command whose failure does not end the operation. */
  readonly attempt: <T>(command: () => T) => T | undefined;
}
