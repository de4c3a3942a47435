import type { Duration } from './duration.js';

/** Options that apply to all locks of a service. */
export interface RedlockOptions {
  /**
   * Lifetime of a key unless the lock is extended. A crashed holder blocks others for as long. At least 10 ms. With the
   * restart guard, at most `maxTtl`.
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
   * @default 250 ms, or a quarter of the ttl if less
   */
  masterTimeout?: Duration;
  /**
   * Share of the ttl that is given up, because clocks do not run alike. From 0 to 0.5.
   * @default 0.01
   * @see https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
   */
  driftFactor?: number;
  /**
   * Largest `ttl` of any lock while the restart guard is on, and how long a master waits before it votes. It makes no lock
   * longer, and limits nothing while the guard is off.
   *
   * All processes of a prefix need the same value. To raise it, first deploy the option everywhere, then the longer ttls;
   * lower it in the reverse order.
   * @default the ttl
   */
  maxTtl?: Duration;
  /**
   * Keeps a master that may have lost locks from voting until each of them has ended. That takes `maxTtl` after a restart,
   * a loss of its data, or its first use. Its user needs the permission for `INFO`.
   *
   * With one or two masters, one that waits leaves no quorum. A Sentinel group or a cluster cannot have it: a promoted
   * replica may lack locks without having been restarted.
   * @default true for three single servers or more
   */
  restartGuard?: boolean;
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
}

/** Options of one acquisition. */
export interface AcquireOptions {
  /**
   * Lifetime of the lock unless it is extended, in milliseconds or as a string such as `'10s'`.
   * @default the module's `ttl`
   */
  ttl?: Duration;
  /**
   * How long to wait for a resource that is held; `0` is one attempt.
   * @default the module's `wait`; `0` for `tryAcquire`
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
   * twice on machines whose clocks differ. At most `maxHold`. A loss of data can cut it to `maxTtl`.
   * @default 0
   */
  minHold?: Duration;
  /**
   * Cancels the wait, which rejects with its reason. If more than ten calls may wait with one signal, raise the number of
   * listeners from which Node warns: `setMaxListeners(0, signal)` of `node:events`.
   */
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
