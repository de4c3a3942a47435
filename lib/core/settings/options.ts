import type { Duration } from './duration.js';

/** Options that apply to all locks of a service. */
export interface RedlockOptions {
  /**
   * Lifetime of a key unless the lock is extended. A crashed holder blocks others for as long. At least 10 ms, at most
   * `maxTtl`.
   * @default '10s'
   */
  ttl?: Duration;
  /**
   * How long to wait for a resource that is held; `0` is one attempt.
   * @default '5s'
   */
  wait?: Duration;
  /**
   * Longest time for which extensions keep a lock; one that reaches it is lost.
   * @default '1h', or the ttl if longer
   */
  maxHold?: Duration;
  /**
   * How long one master may take to answer. At most a quarter of the ttl; otherwise, waiting for answers would use up
   * the time for which the lock can be relied on.
   * @default 50 ms, or a quarter of the ttl if less
   */
  masterTimeout?: Duration;
  /**
   * Share of the ttl that is given up, because clocks do not run alike. From 0 to 0.5.
   * @default 0.01
   * @see https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
   */
  driftFactor?: number;
  /**
   * Upper bound of every `ttl` and `minHold`. It makes no lock longer. With the restart guard, a ttl beyond the
   * largest one that all masters know is cut to that value, with a warning, until every master has been reached once.
   *
   * It also bounds how long a master stays out after a loss of data. Normally, the longest ttl in use determines that
   * time.
   * @default '30s', or `ttl` if longer
   */
  maxTtl?: Duration;
  /**
   * Keeps a master that may have lost locks from voting. It may have lost them by a restart, a promotion, a replacement
   * or a flush. It votes again when every earlier lock has ended: after the longest ttl in use and its drift or, if too
   * few other masters can be read, after the largest ttl ever announced. New masters, three or more, vote after about
   * 2.5 seconds. With fewer than three masters, one that waits leaves no quorum.
   *
   * With three or more masters, it also detects jumps of the clock of a master and of the clocks of this process.
   * @default true for three masters or more
   */
  restartGuard?: boolean;
  /**
   * Declares that every master keeps each acknowledged write across restarts. It does with `appendfsync always`, or
   * because a managed service guarantees it. Such a master votes again at once after a restart, as long as the marker
   * in its data is present, and this process knows no other data of its address. A promoted replica waits all the same.
   * If the declaration is false, two holders are possible. To declare it for one master, set it in the options of that
   * master: `{ host, durable: true }`.
   *
   * Nothing is inferred from what a server reports. Without `restartGuard`, this option has no effect.
   * @default false
   */
  durable?: boolean;
  /**
   * Prefix of every key on the masters. Services with different prefixes never share a key. Unless the prefix
   * is one word and a colon, a NUL character and `key:` follow it, which separates the keys of `app:` and `app:jobs:`.
   * @default 'lock:'
   */
  keyPrefix?: string;
  /**
   * Name of this process in locks, errors, `inspect` and connections. From 1 to 100 printable ASCII characters without
   * spaces.
   * @default host and process, as in `web-7d9f:1`
   */
  instance?: string;
  /**
   * What happens when nested calls take locks in different orders, so that they can wait for each other. A warning in the
   * log, once for each cycle, or a `LockOrderError` for each call. `'off'`: the order is not watched.
   * @default 'warn'
   * @see LockOrderError
   */
  lockOrder?: LockOrderOption;
}

/** How a service treats locks that call chains take in different orders. */
export type LockOrderOption = 'off' | 'warn' | 'error';

/** Options of one acquisition. */
export interface AcquireOptions {
  /**
   * Lifetime of the lock unless it is extended, in milliseconds or as a string such as `'10s'`.
   * @default the module's `ttl`
   */
  ttl?: Duration;
  /**
   * How long to wait for a resource that is held; `0` is one attempt.
   * @default the module's `wait`
   */
  wait?: Duration;
  /**
   * Whether to extend the lock until it is released.
   * @default true; false for `acquire` and `tryAcquire`
   */
  extend?: boolean;
  /**
   * Longest time for which extensions keep this lock; reaching it is a loss.
   * @default the module's `maxHold`, or the ttl if longer
   */
  maxHold?: Duration;
  /**
   * The resource stays locked for at least this long, even if released earlier. This keeps a short job from running
   * twice on machines whose clocks differ. At most `maxTtl` and `maxHold`.
   * @default 0
   */
  minHold?: Duration;
  /** Cancels the wait, which rejects with its reason. */
  signal?: AbortSignal;
  /**
   * `'shared'`: any number of shared holders may have the resource, and no exclusive one. A shared lock has neither a
   * fencing token nor a state, and cannot be combined with `minHold` or `permits`.
   *
   * An exclusive request that waits for shared holders is not passed by shared ones that come later.
   * @default 'exclusive'
   */
  mode?: LockMode;
  /**
   * How many holders the resource may have, in all instances. From 1 to 1,000, for one resource. Permits
   * of a name and a lock of the same name do not exclude each other.
   *
   * All instances should give the same number. Those that give a smaller one use that many of the permits.
   * @default a lock: one holder
   */
  permits?: number;
}

/** Whether a lock has one holder, or many at the same time. */
export type LockMode = 'exclusive' | 'shared';
