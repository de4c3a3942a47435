import type { LockNotAcquiredError } from '../core/errors.js';
import type { Duration } from '../core/settings/duration.js';
import type { AcquireOptions } from '../core/settings/options.js';

/** Has no prototype, so that a property added to `Object.prototype` is not read as an option. */
export const NO_OPTIONS: AcquireOptions = Object.freeze(Object.create(null) as object);

/** One resource, or several that are acquired together or not at all. */
export type LockResource = string | readonly string[];

/** Options of `LockService.withLock`. */
export interface WithLockOptions extends AcquireOptions {
  /**
   * Lets a nested call for a resource that this call chain already holds run inside the existing lock. Without this
   * option such a call fails at once with a `LockReentryError`, instead of waiting for itself.
   *
   * The lock excludes other call chains. It does not separate the calls of this one: calls that run in parallel, for
   * example in a `Promise.all`, are inside the lock at the same time. Run them one after the other, or let each acquire
   * a lock under its own name.
   * @default false
   */
  reentrant?: boolean;
}

/** Users give a ttl, or options that may contain one. A value that is not an object counts as a ttl. */
export function optionsOf<Options extends AcquireOptions>(given: Duration | Options | undefined): Options {
  if (given === undefined) return NO_OPTIONS as Options;
  return typeof given === 'object' && (given as Options | null) !== null ? given : ({ ttl: given } as Options);
}

/** Options of `@WithLock` and `LockInterceptor`. */
export interface LockedMethodOptions extends Omit<WithLockOptions, 'signal'> {
  /**
   * What happens if another holder keeps the resource until the waiting budget ends. `'throw'`: the call fails with a
   * `LockNotAcquiredError`. `'skip'`: the call resolves to `undefined`, and `wait` defaults to `0`. A function: the
   * call resolves to the result of the function. An outage always throws.
   * @default 'throw'
   */
  onLocked?: 'throw' | 'skip' | ((error: LockNotAcquiredError) => unknown);
  /** Name of the lock service to use, if the module is registered with a `name`. */
  service?: string;
}
