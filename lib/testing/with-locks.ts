import { RedlockConfigError } from '../core/errors.js';
import type { LockService } from '../nest/lock.service.js';
import { assignLockService } from '../nest/with-lock.decorator.js';
import { memoryLockService } from './memory-lock-service.js';

/**
 * Gives an object that Nest did not create the lock service that its `@WithLock` methods use:
 *
 * ```ts
 * const orders = withLocks(new OrderService(carrier));
 * ```
 *
 * @param object an object whose class has `@WithLock` methods. Objects that it refers to are not changed.
 * @param locks serves all its methods, including those that name another service; default: a new `memoryLockService()`
 * @returns the same object
 * @throws {RedlockConfigError} if the object has no `@WithLock` method, for an invalid option of `@WithLock`, and for a
 * mock in place of `locks`
 */
export function withLocks<T extends object>(object: T, locks: LockService = memoryLockService()): T {
  if (typeof object !== 'object' || (object as T | null) === null) {
    throw new RedlockConfigError('withLocks', object, 'needs an object, as in withLocks(new OrderService())');
  }
  if (assignLockService(object, locks).length === 0) {
    throw new RedlockConfigError('withLocks', object, 'needs an object whose class has a @WithLock method');
  }
  return object;
}
