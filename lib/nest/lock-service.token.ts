import { Inject } from '@nestjs/common';
import { RedlockConfigError } from '../core/errors.js';
import type { LockService } from './lock.service.js';

/**
 * Injection token of a lock service, and the property under which objects with `@WithLock` methods keep it. It is a
 * registered symbol rather than the class, so that two copies of this package in one process refer to the same service.
 *
 * @param name as given to `RedlockModule.forRoot({ name })`; default: the service that was registered without one
 * @throws {RedlockConfigError} for a name that is empty or not a string
 */
export function getLockServiceToken(name?: string): symbol {
  checkServiceName('name', name);
  // Nest shows this description if it cannot find the service.
  const [which, options] = name === undefined ? ['', '...'] : [` "${name}"`, `{ name: '${name}', ... }`];
  return Symbol.for(`LockService${which} of nestjs-redlock: import RedlockModule.forRoot(${options})`);
}

/**
 * Injects the lock service that was registered with this `name`; without a `name`, the one that was registered without
 * a name.
 *
 * @throws {RedlockConfigError} at class definition, for a name that is empty or not a string
 */
export function InjectLockService(name?: string): PropertyDecorator & ParameterDecorator {
  return Inject(getLockServiceToken(name));
}

/** Injection token of the lock service that the options of `@WithLock` or `LockInterceptor` name. */
export function tokenFor(where: string, options: { readonly service?: string }): symbol {
  let service: string | undefined;
  try {
    ({ service } = options);
  } catch {
    throw new RedlockConfigError(where, options, 'must have an object of options that can be read');
  }
  checkServiceName(`${where}: service`, service);
  return getLockServiceToken(service);
}

/**
 * @throws {RedlockConfigError} if decorators and interceptors cannot work with the object that replaces the service in
 * a test
 */
export function checkLockService(where: string, locks: LockService): void {
  if (typeof (locks as Partial<LockService> | undefined)?.check === 'function') return;
  const requirement =
    'cannot lock with a stub: in place of the LockService take memoryLockService() of nestjs-redlock/testing';
  throw new RedlockConfigError(where, locks, requirement);
}

/** @throws {RedlockConfigError} unless the name is `undefined` or a non-empty string */
export function checkServiceName(option: string, name: unknown): void {
  if (name === undefined || (typeof name === 'string' && name !== '')) return;
  throw new RedlockConfigError(option, name, 'must be a non-empty string');
}
