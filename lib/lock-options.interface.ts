import type { LockNotAcquiredError } from './core/errors.js';
import type { AcquireOptions } from './core/options.js';

/** One resource, or several that are taken together or not at all. */
export type LockResource = string | readonly string[];

/** Options of `LockService.withLock`. */
export interface WithLockOptions extends AcquireOptions {
  /**
   * A nested call for a resource that this call chain holds runs inside the lock that is held. Without it such a call
   * fails at once with a `LockReentryError`, instead of waiting for itself.
   *
   * The lock keeps other call chains out, and not the calls of this one apart: those that run in parallel, for example
   * in a `Promise.all`, are inside it at the same time. Run them one after the other, or let each take a lock of its
   * own name.
   * @default false
   */
  reentrant?: boolean;
}

/** Options of `@WithLock` and `LockInterceptor`. */
export interface LockedMethodOptions extends Omit<WithLockOptions, 'signal'> {
  /**
   * What happens when the resource is held by someone else until the waiting budget has ended. `'throw'`: the call
   * fails with a `LockNotAcquiredError`. `'skip'`: it resolves `undefined`, and `wait` is `0` unless given.
   * A function: it resolves what the function returns. An outage always throws.
   * @default 'throw'
   */
  onLocked?: 'throw' | 'skip' | ((error: LockNotAcquiredError) => unknown);
  /** Name of the lock service to use, where the module is registered with a `name`. */
  service?: string;
}
