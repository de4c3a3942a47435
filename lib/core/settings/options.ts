import type { Duration } from './duration.js';

/** Options that apply to all locks of a service. */
export interface RedlockOptions {
  /**
   * Lifetime of a key on a master unless the lock is extended: how long a crashed holder blocks others.
   * At least 10 ms, at most `maxTtl`.
   * @default '10s'
   */
  ttl?: Duration;
  /**
   * How long an acquisition may wait for a resource that is held. `0` allows exactly one attempt.
   * @default '5s'
   */
  wait?: Duration;
  /**
   * Longest time for which extensions may keep a lock. A lock that reaches it is lost.
   * @default '1h', or `ttl` if that is longer
   */
  maxHold?: Duration;
  /**
   * How long one master may take to answer. At most a quarter of the ttl; otherwise, waiting for answers would use up
   * the time for which the lock can be relied on.
   * @default 50 ms, or a quarter of the ttl if that is less
   */
  masterTimeout?: Duration;
  /**
   * Share of the ttl that is subtracted from the validity, because clocks do not run at exactly the same rate.
   * From 0 to 0.5.
   * @default 0.01
   * @see https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
   */
  driftFactor?: number;
  /**
   * Upper bound of every ttl and every `minHold`. It makes no lock longer. With the restart guard, a ttl beyond the
   * largest one that all masters know is cut to that value, with a warning, until every master has been reached once.
   *
   * It also bounds how long a master stays out after a loss of data. Normally, the longest ttl in use determines that
   * time.
   * @default '30s', or `ttl` if that is longer
   */
  maxTtl?: Duration;
  /**
   * Keeps a master that may have lost locks from voting, after a restart, a promotion, a replacement or a flush. The
   * master votes again when every earlier lock has ended: after the longest ttl in use and its drift or, if too few
   * other masters can be read, after the largest ttl ever announced. New masters, three or more, vote after about
   * 2.5 seconds.
   *
   * With three or more masters, it also detects jumps of the clock of a master and of the clocks of this process.
   * @default true for three or more masters, because with fewer, a master that waits leaves no quorum
   */
  restartGuard?: boolean;
  /**
   * Declares that every master keeps each acknowledged write across restarts: with `appendfsync always`, or because a
   * managed service guarantees it. Such a master votes again at once after a restart, as long as the marker in its data
   * is present, and this process knows no other data of its address. A promoted replica waits all the same. If the
   * declaration is false, two holders are possible. To declare it for one master, set it in the options of that master:
   * `{ host, durable: true }`.
   *
   * Nothing is inferred from what a server reports. Without `restartGuard`, this option has no effect.
   * @default false
   */
  durable?: boolean;
  /**
   * Prefix of every key written to the masters. Services with different prefixes never share a key. Unless the prefix
   * is one word and a colon, a NUL character and `key:` follow it, which separates the keys of `app:` and `app:jobs:`.
   * @default 'lock:'
   */
  keyPrefix?: string;
  /**
   * Name of this process. It is stored with each lock, so that errors, `inspect` and the command line show the holder,
   * and it names the connections on the masters. From 1 to 100 printable ASCII characters without spaces.
   * @default the name of the host and the number of the process, as in `web-7d9f:1`
   */
  instance?: string;
}

/** Options of one acquisition. */
export interface AcquireOptions {
  /**
   * Lifetime of the lock unless it is extended, in milliseconds or as a string such as `'10s'`.
   * @default the module's `ttl`
   */
  ttl?: Duration;
  /**
   * How long to wait for a resource that is held, instead of the module's `wait`. `0` allows exactly one attempt.
   * @default the module's `wait`
   */
  wait?: Duration;
  /**
   * Whether to keep extending the lock until it is released.
   * @default true for `withLock`, `@WithLock` and `LockInterceptor`; false for `acquire` and `tryAcquire`
   */
  extend?: boolean;
  /**
   * Longest time for which extensions may keep this lock, instead of the module's `maxHold`.
   * @default the module's `maxHold`, or the ttl if that is longer
   */
  maxHold?: Duration;
  /**
   * The resource stays locked for at least this long after the acquisition, even if the lock is released earlier.
   * This keeps a short job from running twice on machines whose clocks differ. At most `maxTtl` and `maxHold`.
   * @default 0
   */
  minHold?: Duration;
  /** Cancels the wait when it aborts: the acquisition then rejects with the reason of the signal. */
  signal?: AbortSignal;
  /**
   * `'shared'`: any number of shared holders may have the resource at the same time, and no exclusive one. A shared lock
   * has neither a fencing token nor a state, and cannot be combined with `minHold` or `permits`.
   *
   * An exclusive request that waits for shared holders is not passed by shared ones that come later.
   * @default 'exclusive'
   */
  mode?: LockMode;
  /**
   * How many holders may have the resource at the same time, in all instances: from 1 to 1,000. For one resource. Permits
   * of a name and a lock of the same name do not exclude each other.
   *
   * All instances should give the same number. Those that give a smaller one use that many of the permits.
   * @default a lock: one holder
   */
  permits?: number;
}

/** Whether a lock has one holder, or many at the same time. */
export type LockMode = 'exclusive' | 'shared';
