import { type CallHandler, type ExecutionContext, Logger, StreamableFile } from '@nestjs/common';
import { MetadataScanner } from '@nestjs/core';
import { defer, type Subscriber, type Subscription } from 'rxjs';
import { RedlockConfigError } from '../settings/config.error.js';
import type { LockScope } from './lock-scope.js';
import { returnsObservable } from './lockable-method.js';

// An async function would do the same for one more promise in each call.
export function rejectOnThrow<T>(run: () => Promise<T>): Promise<T> {
  try {
    return run();
  } catch (error) {
    return Promise.reject(error);
  }
}

// Forwards a handler's result under a lock, and releases the lock when the last value has been delivered.
export class LockedStream {
  private readonly source: Subscription | undefined;
  private last: unknown;
  private emitted = false;
  private over = false;

  constructor(
    private readonly hold: LockScope,
    next: CallHandler,
    private readonly subscriber: Subscriber<unknown>,
    private readonly response: ResponseStream | undefined,
    private readonly handler: HandlerShape,
  ) {
    if (subscriber.closed) {
      this.over = true;
      void hold.end();
      return;
    }
    hold.lock.signal.addEventListener('abort', this.onLost, { once: true });
    // Work that precedes the handler, such as another interceptor, runs on subscription.
    const handle = (): Subscription =>
      defer(() => next.handle()).subscribe({
        next: (value: unknown) => this.pass(value),
        error: (error: unknown) => this.fail(error),
        complete: () => void this.finish().catch((error: unknown) => this.failOrReport(error)),
      });
    try {
      this.source = hold.run(handle);
    } catch (error) {
      this.fail(error);
    }
    // The stream may have ended synchronously, before `source` was assigned and could be unsubscribed.
    if (this.over) this.tearDown();
  }

  unsubscribe(): void {
    // A handler that has emitted nothing yet may be a promise, which continues and needs its lock. An Observable, or a
    // response that has already begun, belongs to a stream that may never emit again.
    const isStream = this.handler.isObservable || this.emitted || this.response?.headersSent;
    if (isStream) this.abandon();
  }

  private abandon(): void {
    this.tearDown();
    if (this.over) return;
    this.over = true;
    this.release();
  }

  private pass(value: unknown): void {
    if (this.subscriber.closed) {
      this.abandon();
      return;
    }
    const { loss } = this.hold.lock;
    if (loss) {
      this.fail(loss);
      return;
    }
    this.emitted = true;
    this.last = value;
    this.subscriber.next(value);
  }

  private async finish(): Promise<void> {
    const { loss } = this.hold.lock;
    if (loss) {
      this.fail(loss);
      return;
    }
    if (!this.response && !this.handler.mayIterate && isAsyncIterable(this.last)) {
      this.fail(misplacedStream(this.handler.where, this.last));
      return;
    }
    this.over = true;
    if (this.response && this.isStillSending(this.response)) {
      this.finishWithResponse(this.response);
      return;
    }
    this.forget();
    await this.hold.end();
    // The masters may have told at the release that another holder may have had the lock.
    // Protocol 7.6
    const { loss: lossAtEnd } = this.hold.lock;
    if (lossAtEnd) this.subscriber.error(lossAtEnd);
    else this.subscriber.complete();
  }

  // Nest sends all other values at once and as a whole, after the lock was released, so that the next request finds it
  // free.
  private isStillSending(response: ResponseStream): boolean {
    if (response.writableEnded || response.destroyed) return false;
    const { answersItself, isKnown } = this.handler;
    return answersItself || (!isKnown && this.last === undefined) || mayStream(this.last);
  }

  // The handler has returned, but its result is still being written to the response.
  private finishWithResponse(response: ResponseStream): void {
    const end = (): void => {
      response.off('finish', end).off('close', end);
      this.release();
    };
    response.once('finish', end).once('close', end);
    this.subscriber.complete();
  }

  private fail(error: unknown): void {
    this.tearDown();
    this.over = true;
    this.release();
    this.subscriber.error(error);
  }

  private failOrReport(error: unknown): void {
    if (this.subscriber.closed) report(error);
    else this.fail(error);
  }

  // A promise may still fail with its own error, which takes precedence. A stream would continue as if it held the
  // lock, so it fails.
  private readonly onLost = (): void => {
    if (this.over) this.response?.destroy();
    else if (this.emitted || this.handler.isObservable) this.fail(this.hold.lock.loss);
  };

  // The teardown is application code: an error there must not keep the lock.
  private tearDown(): void {
    try {
      this.source?.unsubscribe();
    } catch (error) {
      report(error);
    }
  }

  private release(): void {
    this.forget();
    void this.hold.end();
  }

  private forget(): void {
    this.hold.lock.signal.removeEventListener('abort', this.onLost);
  }
}

// For a signal listener or a promise that is not awaited, where an error would end the process.
function report(error: unknown): void {
  try {
    new Logger('LockInterceptor').error(error);
  } catch {
    // The logger is application code, too.
  }
}

export interface HandlerShape {
  // The interceptor and the handler, for messages.
  readonly where: string;
  // By its declared type.
  readonly isObservable: boolean;
  // It has the response: Nest sends nothing of what it returns.
  readonly answersItself: boolean;
  // If not, another function stands in the place of the method, and what it has is unknown.
  readonly isKnown: boolean;
  // A subscription of GraphQL is an async iterable, and its lock that of its beginning.
  readonly mayIterate: boolean;
}

const SCANNER = new MetadataScanner();
// The first parts of the keys of Nest's metadata of parameters: those of `@Res` and `@Next`.
const RESPONSE = /^[12]:/;

export function handlerOf(context: ExecutionContext): HandlerShape {
  const [owner, handler] = [context.getClass(), context.getHandler()];
  const prototype = owner.prototype as object;
  // A decorator may have replaced the method by a function of another name.
  const isHandler = (name: string): boolean => Reflect.get(prototype, name) === handler;
  const found = SCANNER.getAllMethodNames(prototype).find(isHandler);
  const name = found ?? handler.name.replace(/^bound /, '');
  const parameters = (Reflect.getMetadata('__routeArguments__', owner, name) ?? {}) as object;
  const answersItself =
    Object.keys(parameters).some((key) => RESPONSE.test(key)) &&
    Reflect.getMetadata('__responsePassthrough__', owner, name) !== true;
  const where = `LockInterceptor on ${owner.name}.${name}`;
  const mayIterate = context.getType<string>() === 'graphql';
  return {
    where,
    isObservable: returnsObservable(prototype, name),
    answersItself,
    isKnown: found !== undefined,
    mayIterate,
  };
}

interface ResponseStream {
  readonly writableEnded: boolean;
  readonly destroyed: boolean;
  readonly headersSent: boolean;
  once(event: 'finish' | 'close', listener: () => void): this;
  off(event: 'finish' | 'close', listener: () => void): this;
  destroy(): unknown;
}

export function responseOf(context: ExecutionContext): ResponseStream | undefined {
  if (context.getType() !== 'http') return undefined;
  const response = context.switchToHttp().getResponse<({ raw?: ResponseStream } & ResponseStream) | undefined>();
  const stream = response?.raw ?? response;
  // Packages that run handlers through an ExternalContextCreator may declare their context as HTTP without a response.
  return typeof stream?.once === 'function' ? stream : undefined;
}

// A stream, or a plain object around one, as interceptors make them: Nest sends the stream.
function mayStream(value: unknown): boolean {
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

// A stream with its own reader is one of a value that is sent as a whole, as far as Nest knows.
function isAsyncIterable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value && !('pipe' in value);
}

// Without an HTTP response, nothing shows when all of it was read.
function misplacedStream(where: string, value: unknown): RedlockConfigError {
  const requirement =
    'cannot lock what runs after the handler has returned, without an HTTP response: return an Observable';
  return new RedlockConfigError(where, value, requirement);
}
