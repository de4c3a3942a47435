import { Inject } from '@nestjs/common';
import { isObservable } from 'rxjs';
import { RedlockConfigError } from '../core/errors.js';

export function methodOf<Method>(
  where: string,
  target: object,
  descriptor: TypedPropertyDescriptor<Method> | undefined,
): Method {
  const method = descriptor?.value;
  if (typeof target === 'function') throw misuse(where, 'a static method', ': make it an instance method');
  if (typeof method !== 'function') throw misuse(where, 'an accessor or a property', ': write it as a method');
  if (/Generator/.test(Object.prototype.toString.call(method))) throw misuse(where, 'a generator');
  return method;
}

export function misuse(where: string, what: string, advice = ''): RedlockConfigError {
  return new RedlockConfigError(where, what, `needs a method that returns a promise${advice}`);
}

// A stream would run after the method has returned, without the lock.
export function refuseStream<T>(where: string, result: T, advice = ': use LockInterceptor'): T {
  if (!isObservable(result) && !isAsyncIterator(result)) return result;
  throw new RedlockConfigError(where, result, `cannot lock what runs after the method has returned${advice}`);
}

// A decorated member is given by the prototype of its class, or by the class for a static one.
export function classNameOf(target: object): string {
  return typeof target === 'function' ? target.name : target.constructor.name;
}

// Nest sets the property of the instances, and cannot create them if nothing provides the token.
export function injectProperty(target: object, token: symbol): void {
  if (token in target) return;
  Object.defineProperty(target, token, {
    configurable: true,
    get: () => undefined,
    // Not enumerable: code that lists or compares the properties of the user's object must not see it.
    set(this: object, value: unknown) {
      Object.defineProperty(this, token, { value, configurable: true, writable: true });
    },
  });
  Inject(token)(target, token);
}

// Also recognizes an async generator that was compiled for an older runtime. A readable stream is not an iterator.
function isAsyncIterator(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value && 'next' in value;
}
