import 'reflect-metadata';
import { type DiscoveryService, MetadataScanner } from '@nestjs/core';
import { LOCK_INTERCEPTOR } from './unintercepted-handlers.js';

/**
 * Writes the name of the handler or the class that uses it into each class of `LockInterceptor`, for error messages. Called
 * before Nest creates the interceptors, which check their options then and cannot see where they are used.
 */
export function nameInterceptors(discovery: DiscoveryService): void {
  for (const { metatype } of [...discovery.getControllers(), ...discovery.getProviders()]) {
    const owner: unknown = metatype;
    if (!isClass(owner)) continue;
    nameAll(owner, owner.name);
    for (const name of new MetadataScanner().getAllMethodNames(owner.prototype)) {
      nameAll(Reflect.get(owner.prototype, name) as object, `${owner.name}.${name}`);
    }
  }
}

function isClass(value: unknown): value is { readonly name: string; readonly prototype: object } {
  return typeof value === 'function' && typeof value.prototype === 'object' && value.prototype !== null;
}

function nameAll(target: object, place: string): void {
  const interceptors: unknown = Reflect.getMetadata('__interceptors__', target);
  if (!Array.isArray(interceptors)) return;
  for (const each of interceptors) {
    if (typeof each === 'function' && LOCK_INTERCEPTOR in each) {
      Object.assign(each, { [LOCK_INTERCEPTOR]: `LockInterceptor on ${place}` });
    }
  }
}
