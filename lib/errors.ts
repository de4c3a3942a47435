import { LockReentryError } from './locks/lock-reentry.error.js';
import { BRAND, LockError, LockLostError, LockServiceStoppedError, QuorumUnavailableError } from './redlock/errors.js';
import { RedlockConfigError } from './settings/config.error.js';
import { LockNotAcquiredError } from './waiting/lock-not-acquired.error.js';

export {
  LockError,
  LockLostError,
  LockNotAcquiredError,
  LockReentryError,
  LockServiceStoppedError,
  QuorumUnavailableError,
  RedlockConfigError,
};

type CodedError =
  | LockNotAcquiredError
  | QuorumUnavailableError
  | LockLostError
  | LockReentryError
  | LockServiceStoppedError
  | RedlockConfigError;

/**
 * Whether a value is an error of this library. With two copies of this package in one process, as ESM and as CommonJS or
 * in two versions, `instanceof` is false for an error of the other copy; this is true.
 */
export function isLockError(error: unknown): error is LockError;
/**
 * Whether a value is an error of this library with this code, also of another copy of this package.
 *
 * @param code as in {@link LockError.code}
 */
export function isLockError<Code extends CodedError['code']>(
  error: unknown,
  code: Code,
): error is Extract<CodedError, Record<'code', Code>>;
export function isLockError(error: unknown, code?: unknown): boolean {
  if (!(error instanceof Error && BRAND in error)) return false;
  // `filter` and the like pass an index.
  return typeof code !== 'string' || (error as LockError).code === code;
}
