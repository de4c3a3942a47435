import { Inject } from '@nestjs/common';
import type { DiscoveryService, ModuleRef } from '@nestjs/core';
import { RedlockConfigError } from '../settings/config.error.js';
import { text } from '../settings/table.js';
import { IS_LOCK_SERVICE, type LockService } from './lock.service.js';

// Provides the name of a lock service, or `null`. A registered symbol is the same for both builds of this package.
export const SERVICE_NAME = Symbol.for('nestjs-redlock:service-name');

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
  const inTests = name === undefined ? '' : `{ name: '${name}' }`;
  return Symbol.for(
    `LockService${which} of nestjs-redlock: import RedlockModule.forRoot(${options}), in a test ` +
      `RedlockTestingModule.forRoot(${inTests}) of nestjs-redlock/testing`,
  );
}

// The lock service that every module uses instead of the one that it would start. `RedlockTestingModule` provides it.
export function getReplacementToken(name?: string): symbol {
  return Symbol.for(`nestjs-redlock:replacement:${name ?? ''}`);
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

// In a test, an object that cannot lock may replace the service.
export function checkLockService(where: string, locks: unknown): asserts locks is LockService {
  if (isLockService(locks)) return;
  const requirement =
    'cannot lock with a mock instead of the LockService: import RedlockTestingModule.forRoot() of ' +
    'nestjs-redlock/testing, which locks in memory, or use memoryLockService() as the replacement';
  throw new RedlockConfigError(where, locks, requirement);
}

export function isLockService(value: unknown): value is LockService {
  // A mock may return a function for each property.
  return typeof value === 'object' && value !== null && Reflect.get(value, IS_LOCK_SERVICE) === true;
}

function checkServiceName(option: string, name: unknown): void {
  if (name !== undefined) text(option, name);
}

interface FoundService {
  // `null` for the service without a name.
  readonly name: string | null;
  // `undefined` if an object in its place is none.
  readonly locks: LockService | undefined;
}

// Of all modules of the application. In a test, several of them may lead to one service.
export function lockServicesIn(discovery: DiscoveryService, modules: ModuleRef): readonly FoundService[] {
  const found = new Map<unknown, string | null>();
  for (const { token, instance } of discovery.getProviders()) {
    if (token !== SERVICE_NAME) continue;
    const name = instance as string | null;
    const locks: unknown = modules.get(getLockServiceToken(name ?? undefined), { strict: false });
    if (!found.has(locks)) found.set(locks, name);
  }
  return [...found].map(([locks, name]) => ({ name, locks: isLockService(locks) ? locks : undefined }));
}
