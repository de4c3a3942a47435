import { type CallHandler, HttpException, Logger } from '@nestjs/common';
import { defer, type Subscriber, type Subscription } from 'rxjs';
import { RedlockConfigError } from '../settings/config.error.js';
import { HandlerCalls } from './handler-calls.js';
import { type HandlerShape, isAsyncIterable, mayStream, owesAnswer, stopped } from './handler-shape.js';
import type { HttpExchange } from './http-exchange.js';
import type { LockScope } from './lock-scope.js';

// Proxies log this status for a client that disconnects before the response.
const CLIENT_CLOSED_REQUEST = 499;

// An async function would do the same for one more promise in each call.
export function rejectOnThrow<T>(run: () => Promise<T>): Promise<T> {
  try {
    return run();
  } catch (error) {
    return Promise.reject(error);
  }
}

// Forwards a handler's result under a lock, and releases the lock when the handler has settled, the last value has been
// delivered, and nothing more of it is written to the response.
export class LockedStream {
  private readonly source: Subscription | undefined;
  private readonly calls: HandlerCalls;
  private readonly stopWatching: (() => void) | undefined;
  private last: unknown;
  private emitted = false;
  // What is emitted has no receiver.
  private left = false;
  // Nothing more is emitted.
  private over = false;
  private isSending = false;
  private released = false;

  constructor(
    private readonly hold: LockScope,
    next: CallHandler,
    private readonly subscriber: Subscriber<unknown>,
    private readonly exchange: HttpExchange | undefined,
    private readonly handler: HandlerShape,
  ) {
    this.calls = new HandlerCalls(handler.method, hold, { check: () => this.check(), settled: () => this.settled() });
    if (subscriber.closed && !owesAnswer(handler, exchange)) {
      this.over = true;
      void this.release();
      return;
    }
    this.left = subscriber.closed;
    hold.lock.signal.addEventListener('abort', this.onLost, { once: true });
    this.stopWatching = exchange?.onOver(() => this.endAbandoned());
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
    this.left = true;
    this.leave();
  }

  // A promise continues and needs its lock, and so do interceptors inside of it, which end. A stream may never end.
  private leave(): void {
    const { hasBegun, isRunning, gaveObservable } = this.calls;
    if (!this.over && !isRunning && (hasBegun ? gaveObservable : this.emitted)) this.stop();
  }

  // Some versions of Nest do not notice that the client of an Observable has left, as with HTTP/2.
  private endAbandoned(): void {
    setImmediate(() => {
      if (this.isStreaming && this.exchange?.isGone) this.fail(clientGone());
    });
  }

  private get isStreaming(): boolean {
    return !this.over && !this.calls.isRunning && this.calls.gaveObservable;
  }

  // An interceptor inside the lock may have answered while the pipes ran.
  private check(): void {
    if (!this.released) return;
    const requirement =
      'cannot run the handler after its lock has ended: an interceptor inside the lock did not wait for it';
    const { where, method } = this.handler;
    throw new RedlockConfigError(where, method, requirement, `${where} ${requirement}`);
  }

  private settled(): void {
    if (this.over) this.conclude();
    else if (this.left) this.leave();
    else if (this.isStreaming && this.hold.lock.loss) this.fail(this.hold.lock.loss);
    else if (this.exchange?.isGone) this.endAbandoned();
  }

  private pass(value: unknown): void {
    this.emitted = true;
    if (this.subscriber.closed) {
      this.unsubscribe();
      return;
    }
    const { loss } = this.hold.lock;
    if (loss) {
      this.fail(loss);
      return;
    }
    this.last = value;
    this.subscriber.next(value);
  }

  private async finish(): Promise<void> {
    const { loss } = this.hold.lock;
    if (loss) {
      this.fail(loss);
      return;
    }
    if (!this.exchange && !this.handler.mayIterate && isAsyncIterable(this.last)) {
      this.fail(misplacedStream(this.handler.where, this.last));
      return;
    }
    this.over = true;
    this.isSending = this.mayBeSending();
    const isUnreceived = this.isSending && this.exchange?.isGone;
    if (this.isBeingSent || isUnreceived || this.calls.isRunning) {
      this.subscriber.complete();
      this.conclude();
      return;
    }
    await (this.isSending ? this.sent() : this.release());
    // The masters may have told at the release that another holder may have had the lock.
    // Protocol 7.6
    const { loss: lossAtEnd } = this.hold.lock;
    if (lossAtEnd) this.subscriber.error(lossAtEnd);
    else this.subscriber.complete();
  }

  // Nest sends all other values at once and as a whole, after the lock was released, so that the next request finds it
  // free.
  private mayBeSending(): boolean {
    if (!this.exchange) return false;
    const { answersItself, isKnown } = this.handler;
    return answersItself || (!isKnown && this.last === undefined) || mayStream(this.last) || this.exchange.isBegun;
  }

  private fail(error: unknown): void {
    this.stop();
    this.subscriber.error(error);
  }

  private stop(): void {
    this.tearDown();
    this.over = true;
    this.isSending = this.exchange?.isBegun === true;
    this.conclude();
  }

  private failOrReport(error: unknown): void {
    if (this.subscriber.closed) report(error);
    else this.fail(error);
  }

  // A promise may still fail with its own error, which takes precedence. A stream would continue as if it held the
  // lock, so it fails. No error can be shown any more in what a handler writes itself.
  private readonly onLost = (): void => {
    const isPartial = this.exchange?.isPartial === true;
    // A handler that has sent nothing yet may still answer.
    const mayCut = isPartial || (this.over && !this.calls.isRunning);
    if (mayCut && (this.over ? this.isBeingSent : this.writes)) this.exchange?.cutOff();
    if (!this.over && (this.emitted || this.isStreaming)) this.fail(this.hold.lock.loss);
  };

  // The teardown is application code: an error there must not keep the lock.
  private tearDown(): void {
    try {
      this.source?.unsubscribe();
    } catch (error) {
      report(error);
    }
  }

  // The handler may still run after another interceptor has answered, and the response may be written after that.
  private conclude(): void {
    if (this.calls.isRunning || this.released) return;
    if (this.isBeingSent && this.exchange) {
      this.exchange.onEnded(() => void this.sent());
      if (this.writes && this.hold.lock.loss) this.exchange.cutOff();
    } else void (this.isSending ? this.sent() : this.release());
  }

  private get writes(): boolean {
    return this.handler.answersItself;
  }

  private get isBeingSent(): boolean {
    return this.isSending && this.exchange?.isOver === false;
  }

  private async sent(): Promise<void> {
    await Promise.allSettled([this.calls.result, this.last].map(stopped));
    await this.release();
  }

  private release(): Promise<void> {
    this.released = true;
    this.stopWatching?.();
    this.hold.lock.signal.removeEventListener('abort', this.onLost);
    return this.hold.end();
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

// Nest answers an HttpException without a line in the log, and a 4xx status blames the client, not the server.
export function clientGone(): HttpException {
  return new HttpException('the client has gone', CLIENT_CLOSED_REQUEST);
}

// Without an HTTP response, nothing shows when all of it was read.
function misplacedStream(where: string, value: unknown): RedlockConfigError {
  const requirement =
    'cannot lock what runs after the handler has returned, without an HTTP response: return an Observable';
  return new RedlockConfigError(where, value, requirement);
}
