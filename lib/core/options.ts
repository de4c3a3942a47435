import type { Duration } from './duration.js';

/** What can be set for all locks of a service. */
export interface RedlockOptions {
  /**
   * Life of a key on a master unless the lock is extended: how long a crashed holder blocks others.
   * At least 10 ms, at most `maxTtl`.
   * @default '10s'
   */
  ttl?: Duration;
  /**
   * How long an acquisition may wait for a resource that is held. `0` means exactly one attempt.
   * @default '5s'
   */
  wait?: Duration;
  /**
   * Longest time for which extension may keep a lock; reaching it is a loss.
   * @default '1h', or `ttl` if that is longer
   */
  maxHold?: Duration;
  /**
   * How long one master may take to answer. At most a quarter of the ttl, else the time left to rely on the lock
   * would be spent waiting.
   * @default 50 ms, or a quarter of the ttl if that is less
   */
  masterTimeout?: Duration;
  /**
   * Share of the ttl that is given up because clocks do not run at exactly the same rate. From 0 to 0.5.
   * @default 0.01
   * @see https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
   */
  driftFactor?: number;
  /**
   * Bound on every ttl and every `minHold`. No lock gets longer by it. With the restart guard, a ttl beyond the largest one
   * that all masters know is cut to that, with a warning, until every master has been reached once.
   *
   * It also bounds how long a master stays out after a loss of data; what counts as a rule is the longest ttl in use.
   * @default '30s', or `ttl` if that is longer
   */
  maxTtl?: Duration;
  /**
   * Keep a master from voting that may have lost locks, after a restart, a promotion, a replacement or a flush, until every
   * lock from before has ended: for the longest ttl in use and its drift, or the largest one that was ever announced where
   * too few other masters can be read. New masters, three or more, vote after about 2.5 seconds.
   *
   * With three masters or more it also notices clocks that jump: the one of a master, and those of this process.
   * @default true for three masters or more, since with fewer a master that waits leaves no quorum
   */
  restartGuard?: boolean;
  /**
   * Declares that every master keeps each acknowledged write across restarts and failovers: with `appendfsync always` and no
   * replicas, or because a managed service promises it. Such a master votes again at once, as long as the marker in its data
   * is there. If it is not true, there can be two holders. For one master, set it in its options: `{ host, durable: true }`.
   *
   * A server that says `appendfsync always` by itself needs no declaration for restarts. Without `restartGuard` it has no
   * effect.
   * @default false
   */
  durable?: boolean;
  /**
   * Prefix of every key written to the masters. Services with different prefixes never share a key: unless the prefix
   * is one word and a colon, a NUL character and `key:` follow it, so that `app:` and `app:jobs:` stay apart.
   * @default 'lock:'
   */
  keyPrefix?: string;
}

/** What can be set for one acquisition. */
export interface AcquireOptions {
  /**
   * How long to wait for a resource that is held, in place of the module's `wait`. `0` means exactly one attempt.
   * @default the module's `wait`
   */
  wait?: Duration;
  /**
   * Keep extending the lock until it is released.
   * @default true for `withLock`, `@WithLock` and `LockInterceptor`; false for `acquire` and `tryAcquire`
   */
  extend?: boolean;
  /**
   * Longest time for which extension may keep this lock, in place of the module's `maxHold`.
   * @default the module's `maxHold`, or the ttl if that is longer
   */
  maxHold?: Duration;
  /**
   * The resource stays taken for at least this long after it was acquired, even if the lock is released earlier.
   * Keeps a short job from running twice on machines whose clocks differ. At most `maxTtl` and `maxHold`.
   * @default 0
   */
  minHold?: Duration;
  /** Cancels waiting with the signal's reason. */
  signal?: AbortSignal;
}

export const REDLOCK_OPTION_NAMES = [
  'ttl',
  'wait',
  'maxHold',
  'masterTimeout',
  'driftFactor',
  'maxTtl',
  'restartGuard',
  'durable',
  'keyPrefix',
] as const satisfies readonly (keyof RedlockOptions)[];

export const ACQUIRE_OPTION_NAMES = [
  'wait',
  'extend',
  'maxHold',
  'minHold',
  'signal',
] as const satisfies readonly (keyof AcquireOptions)[];
