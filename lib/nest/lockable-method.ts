import 'reflect-metadata';
import { Inject } from '@nestjs/common';
import { isObservable } from 'rxjs';
import { RedlockConfigError } from '../core/errors.js';

// What a decorator was given. `where` names it in messages.
export function memberOf<Method>(
  decorator: string,
  target: object,
  property: string | symbol | undefined,
  descriptor: TypedPropertyDescriptor<Method> | undefined,
): { readonly where: string; readonly method: Method } {
  // The prototype of a class, or the class for a static member.
  const owner = typeof target === 'function' ? target.name : target.constructor.name;
  if (property === undefined) throw misuse(`${decorator} on ${owner}`, 'a class');
  const where = `${decorator} on ${owner}.${String(property)}`;
  const method = descriptor?.value;
  if (typeof target === 'function') throw misuse(where, 'a static method', ': make it an instance method');
  if (typeof method !== 'function') throw misuse(where, 'an accessor or a property', ': write it as a method');
  if (/Generator/.test(Object.prototype.toString.call(method))) throw misuse(where, 'a generator');
  return { where, method };
}

export function misuse(where: string, what: string, advice = ''): RedlockConfigError {
  return new RedlockConfigError(where, what, `needs a method that returns a promise${advice}`);
}

// A stream would run after the method has returned, without the lock.
export function refuseStream<T>(where: string, result: T, advice = ': use LockInterceptor'): T {
  if (!isObservable(result) && !isAsyncIterator(result)) return result;
  throw new RedlockConfigError(where, result, `cannot lock what runs after the method has returned${advice}`);
}

// By the metadata that the compiler emits for decorated methods: Nest passes on promises and Observables alike, so that an
// interceptor cannot see what the handler returned.
export function returnsObservable(prototype: object, method: string | symbol): boolean {
  const declared: unknown = Reflect.getMetadata('design:returntype', prototype, method);
  return typeof declared === 'function' && isObservable(declared.prototype);
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
