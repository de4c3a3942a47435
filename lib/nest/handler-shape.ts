import { type ExecutionContext, StreamableFile } from '@nestjs/common';
import { Readable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import { methodNamesOf } from './application-objects.js';
import type { Handler } from './handler-calls.js';
import type { HttpExchange } from './http-exchange.js';

export interface HandlerShape {
  // The interceptor and the handler, for messages.
  readonly where: string;
  // What Nest calls.
  readonly method: Handler;
  // It has the response: Nest sends nothing of what it returns.
  readonly answersItself: boolean;
  // If not, another function replaces the method, and what it has is unknown.
  readonly isKnown: boolean;
  // A subscription of GraphQL is an async iterable, and its lock that of its beginning.
  readonly mayIterate: boolean;
}

// Milliseconds between two looks at a stream that does not tell when it has closed.
const UNTOLD = 20;
// The first parts of the keys of Nest's metadata of parameters: those of `@Res` and `@Next`.
const RESPONSE = /^[12]:/;
// What `@Redirect`, `@Render` and `@Sse` leave on a method.
const OTHERWISE_SENT = ['__redirect__', '__renderTemplate__', '__sse__'];

export function handlerOf(context: ExecutionContext): HandlerShape {
  const [owner, handler] = [context.getClass(), context.getHandler()];
  const prototype = owner.prototype as object;
  // A decorator may have replaced the method by a function of another name.
  const isHandler = (name: string): boolean => Reflect.get(prototype, name) === handler;
  const found = methodNamesOf(prototype).find(isHandler);
  const name = found ?? handler.name.replace(/^bound /, '');
  const parameters = (Reflect.getMetadata('__routeArguments__', owner, name) ?? {}) as object;
  const answersItself =
    Object.keys(parameters).some((key) => RESPONSE.test(key)) &&
    Reflect.getMetadata('__responsePassthrough__', owner, name) !== true &&
    !isSentOtherwise(handler);
  const where = `LockInterceptor on ${owner.name}.${name}`;
  const mayIterate = context.getType<string>() === 'graphql';
  return {
    where,
    method: handler as Handler,
    answersItself,
    isKnown: found !== undefined,
    mayIterate,
  };
}

// Nest answers, also if the method has the response.
export function isSentOtherwise(handler: object): boolean {
  return OTHERWISE_SENT.some((key) => Reflect.hasMetadata(key, handler));
}

// The client waits, and nothing but the handler answers it.
export function owesAnswer({ answersItself }: HandlerShape, exchange: HttpExchange | undefined): boolean {
  return answersItself && exchange?.isOver === false;
}

// A stream, or a plain object around one, as interceptors make them: Nest sends the stream.
export function mayStream(value: unknown): boolean {
  if (value instanceof StreamableFile || isStream(value)) return true;
  if (!isPlain(value)) return false;
  // A getter is code of the application, which Nest runs once.
  return Object.values(Object.getOwnPropertyDescriptors(value)).some((property) => isStream(property.value));
}

// A Node or web stream, an async iterable, a web `Response`, or an Express response that the handler returned.
function isStream(value: unknown): boolean {
  return typeof value === 'object' && value !== null && ('pipe' in value || 'pipeTo' in value || isIterated(value));
}

function isIterated(value: object): boolean {
  return Symbol.asyncIterator in value || Object.prototype.toString.call(value) === '[object Response]';
}

function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

// What gives the parts of a response works on when its client has left: a generator up to its next `yield`, and then in its
// `finally`, a stream until it has closed. Nest stops it first, in the context of the request.
export async function stopped(given: unknown): Promise<void> {
  const source: unknown = given instanceof StreamableFile ? given.getStream() : given;
  if (source instanceof Readable) {
    await new Promise(setImmediate);
    // Nest 11 leaves it open.
    if (given !== source) source.destroy();
    if (source.destroyed) await closed(source);
  } else if (isAsyncIterable(source)) {
    await new Promise(setImmediate);
    await (source as Partial<AsyncGenerator>).return?.(undefined);
  }
}

// A stream with `emitClose: false` does not tell of it.
async function closed(source: Readable): Promise<void> {
  const told = new Promise((resolve) => source.once('close', resolve));
  while (!source.closed) await Promise.race([told, setTimeout(UNTOLD, undefined, { ref: false })]);
}

// A stream with its own reader is one of a value that is sent as a whole, as far as Nest knows.
export function isAsyncIterable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value && !('pipe' in value);
}
