import { type LockNotAcquiredError, RedlockConfigError } from '../core/errors.js';
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

interface DeclaredLockOptions extends Omit<WithLockOptions, 'signal'> {
  /** Name of the lock service to use, if the module is registered with a `name`. */
  service?: string;
}

/** Options of `@WithLock`. */
export interface LockedMethodOptions extends DeclaredLockOptions {
  /**
   * What happens if another holder keeps the resource until the waiting budget ends. `'throw'`: the call fails with a
   * `LockNotAcquiredError`. `'skip'`: the call resolves to `undefined`, and `wait` defaults to `0`; for methods whose
   * result may be `undefined`. A function: the call resolves to the result of the function. An outage always throws.
   * @default 'throw'
   */
  onLocked?: 'throw' | 'skip' | ((error: LockNotAcquiredError) => unknown);
}

/** The response of a handler whose resource another holder keeps. */
export interface LockedStatus {
  /** HTTP status, from 200 to 599. */
  readonly status: number;
}

/** Options of `LockInterceptor`. */
export interface LockInterceptorOptions extends DeclaredLockOptions {
  /**
   * What happens if another holder keeps the resource until the waiting budget ends. `'throw'`: the request fails with a
   * `LockNotAcquiredError`. `{ status }`: the response has this HTTP status and no body, and `wait` defaults to `0`; an
   * `@HttpCode` of the handler takes precedence, and a handler of another protocol than HTTP gives `undefined`. A
   * function: the handler gives the result of the function. An outage always throws.
   * @default 'throw'
   */
  onLocked?: 'throw' | LockedStatus | ((error: LockNotAcquiredError) => unknown);
}

/** @throws {RedlockConfigError} unless `@WithLock` can use the value as `onLocked` */
export function checkOnLocked(where: string, onLocked: unknown): void {
  if (isThrowOrFunction(onLocked) || onLocked === 'skip') return;
  throw new RedlockConfigError(`${where}: onLocked`, onLocked, `must be 'throw', 'skip' or a function`);
}

/** @throws {RedlockConfigError} unless `LockInterceptor` can use the value as `onLocked` */
export function checkOnLockedStatus(where: string, onLocked: unknown): void {
  if (isThrowOrFunction(onLocked) || statusOf(onLocked) !== undefined) return;
  const requirement = `must be 'throw', a status to send such as { status: 202 }, or a function`;
  throw new RedlockConfigError(`${where}: onLocked`, onLocked, requirement);
}

/** The HTTP status that `onLocked` names; `undefined` if it names none. */
export function statusOf(onLocked: unknown): number | undefined {
  try {
    const { status } = onLocked as { readonly status?: unknown };
    return typeof status === 'number' && Number.isInteger(status) && status >= 200 && status <= 599
      ? status
      : undefined;
  } catch {
    // A value such as null, or an object that cannot be read.
    return undefined;
  }
}

function isThrowOrFunction(onLocked: unknown): boolean {
  return onLocked === undefined || onLocked === 'throw' || typeof onLocked === 'function';
}
