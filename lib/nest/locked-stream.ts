import { type CallHandler, type ExecutionContext, Logger, StreamableFile } from '@nestjs/common';
import { defer, type Subscriber, type Subscription } from 'rxjs';
import type { LockScope } from './lock-scope.js';

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
    private readonly isObservable: boolean,
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
        complete: () => void this.finish().catch(report),
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
    const isStream = this.isObservable || this.emitted || this.response?.headersSent;
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
    this.over = true;
    if (this.response && isStillSending(this.response, this.last)) {
      this.finishWithResponse(this.response);
      return;
    }
    this.forget();
    await this.hold.end();
    // Clocks may have disagreed until the masters answered.
    const { loss: lossInDoubt } = this.hold.lock;
    if (lossInDoubt) this.subscriber.error(lossInDoubt);
    else this.subscriber.complete();
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

  // A promise may still fail with its own error, which takes precedence. A stream would continue as if it held the
  // lock, so it fails.
  private readonly onLost = (): void => {
    if (this.over) this.response?.destroy();
    else if (this.emitted || this.isObservable) this.fail(this.hold.lock.loss);
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

// A handler that returned a stream, or nothing, may have left the response to code that still writes to it. Nest sends
// all other values at once and as a whole, after the lock was released, so that the next request finds it free.
function isStillSending(response: ResponseStream, value: unknown): boolean {
  if (response.writableEnded || response.destroyed) return false;
  return value === undefined || value instanceof StreamableFile || isStream(value);
}

// A Node stream, a web stream, or an Express response that the handler returned.
function isStream(value: unknown): boolean {
  return typeof value === 'object' && value !== null && ('pipe' in value || 'pipeTo' in value);
}
