import { Inject } from '@nestjs/common';

/**
 * Injection token of a lock service, and the property that hosts of `@WithLock` keep theirs under. A registered symbol
 * rather than the class, so that two copies of this package in one process still mean the same service.
 */
export function getLockServiceToken(name?: string): symbol {
  // The text is what Nest shows when it cannot find the service.
  const [which, options] = name === undefined ? ['', '...'] : [` "${name}"`, `{ name: '${name}', ... }`];
  return Symbol.for(`LockService${which} of nestjs-redlock: import RedlockModule.forRoot(${options})`);
}

/** Injects the lock service that was registered with this `name`; without a name, the one registered without. */
export function InjectLockService(name?: string): PropertyDecorator & ParameterDecorator {
  return Inject(getLockServiceToken(name));
}
