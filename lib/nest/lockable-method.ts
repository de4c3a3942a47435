import 'reflect-metadata';
import { Inject, StreamableFile } from '@nestjs/common';
import { isObservable } from 'rxjs';
import { RedlockConfigError } from '../settings/config.error.js';
import { noteTaker } from './takers.js';

// What a decorator was given. `where` names it in messages.
export function memberOf<Method>(
  decorator: string,
  target: object,
  property: string | symbol | undefined,
  descriptor: TypedPropertyDescriptor<Method> | undefined,
): { readonly where: string; readonly method: Method } {
  refuseStandard(decorator, property);
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

// A compiler without `experimentalDecorators` calls decorators with what they decorate and a context.
export function refuseStandard(decorator: string, context: unknown): void {
  if (typeof context !== 'object' || context === null || !('kind' in context && 'addInitializer' in context)) return;
  const name = String((context as { readonly name?: unknown }).name);
  const requirement =
    'needs the decorators of Nest, and the compiler emits standard (TC39) ones: set `experimentalDecorators: true` in the ' +
    'tsconfig.json that it reads';
  throw new RedlockConfigError(`${decorator} on ${name}`, context.kind, requirement);
}

export function misuse(where: string, what: string, advice = ''): RedlockConfigError {
  return new RedlockConfigError(where, what, `needs a method that returns a promise${advice}`);
}

export function refuseStream<T>(where: string, result: T, advice = ': use LockInterceptor'): T {
  if (typeof result !== 'object' || result === null || !runsLater(result)) return result;
  const isList = Array.isArray(result);
  // What fails in it later must not end the process. Other thenables would begin now.
  if (isList) void Promise.allSettled(result.filter((each) => each instanceof Promise));
  const remedy = isList ? ': await its promises, as by Promise.all' : advice;
  throw new RedlockConfigError(where, result, `cannot lock what runs after the method has returned${remedy}`);
}

function isThenable(value: unknown): boolean {
  return typeof (value as Partial<PromiseLike<unknown>> | null | undefined)?.then === 'function';
}

// What its reader runs, without the lock: Observables, async iterables, iterators, and streams of Node and of the web, by
// their properties, which other copies and older versions of their packages have, too; and promises that nothing awaits.
function runsLater(value: object): boolean {
  // It is awaited, whatever else can be done with it, and then its result is examined.
  if (isThenable(value)) return false;
  if (Array.isArray(value)) return value.some(isThenable);
  if (Symbol.asyncIterator in value || isObservable(value) || value instanceof StreamableFile) return true;
  if (Symbol.iterator in value && 'next' in value) return true;
  // A stream that can only be written, such as the response of Express, has a `pipe`, too.
  return 'pipeTo' in value || ('pipe' in value && 'readable' in value) || isOwnResponse(value);
}

// A web `Response` that was made here. Its stream runs when it is sent; that of one that was fetched runs elsewhere.
function isOwnResponse(value: object): boolean {
  return 'bodyUsed' in value && 'type' in value && value.type === 'default' && Reflect.get(value, 'body') != null;
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
      if (Reflect.defineProperty(this, token, { value, configurable: true, writable: true })) {
        noteTaker(value, this);
        return;
      }
      const requirement =
        'must not be frozen or sealed: an object with methods under decorators of this package keeps what runs them';
      throw new RedlockConfigError(`provider of class ${this.constructor.name}`, this, requirement);
    },
  });
  Inject(token)(target, token);
}
