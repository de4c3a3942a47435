import 'reflect-metadata';
import { type CallHandler, type ExecutionContext, Logger, StreamableFile } from '@nestjs/common';
import { defer, isObservable, type Subscriber, type Subscription } from 'rxjs';
import type { Hold } from './hold.js';

/** A handler's result, passed on under a lock that is given up when the last of it has been delivered. */
export class LockedStream {
  private readonly source: Subscription | undefined;
  private last: unknown;
  private emitted = false;
  private over = false;

  constructor(
    private readonly hold: Hold,
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
    // What runs before the handler is asked for, such as another interceptor, runs when it is subscribed to.
    this.source = hold.run(() =>
      defer(() => next.handle()).subscribe({
        next: (value: unknown) => this.pass(value),
        error: (error: unknown) => this.fail(error),
        complete: () => void this.finish().catch(report),
      }),
    );
    // The result may have been complete before there was a subscription to give up.
    if (this.over) this.tearDown();
  }

  /** Nobody listens any more. */
  unsubscribe(): void {
    // A handler that has given nothing yet may be a promise, which goes on: it needs its lock. But an Observable, and a
    // response that has begun to a client that has gone, belong to a stream that may never give anything.
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
    this.subscriber.complete();
  }

  /** The handler has returned, but what it returned is still being written. */
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

  /** A promise may still fail with an error of its own, which comes first; a stream would go on as if locked. */
  private readonly onLost = (): void => {
    if (this.over) this.response?.destroy();
    else if (this.emitted || this.isObservable) this.fail(this.hold.lock.loss);
  };

  /** Stops the handler's stream, whose teardown is the application's: what it throws keeps no lock. */
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

/** From the listener of a signal or a promise that nothing waits for, where an error would end the process. */
function report(error: unknown): void {
  try {
    new Logger('LockInterceptor').error(error);
  } catch {
    // The logger is the application's, too.
  }
}

/**
 * Whether a handler is declared to return an Observable, as the compiler noted for its decorators. Nest passes promises
 * and Observables on alike, and what the handler returned is known where it runs only.
 */
export function returnsObservable(context: ExecutionContext): boolean {
  const { prototype } = context.getClass() as { prototype: object };
  const declared: unknown = Reflect.getMetadata('design:returntype', prototype, context.getHandler().name);
  return typeof declared === 'function' && isObservable(declared.prototype);
}

/** What is used of a Node response. */
interface ResponseStream {
  readonly writableEnded: boolean;
  readonly destroyed: boolean;
  readonly headersSent: boolean;
  once(event: 'finish' | 'close', listener: () => void): this;
  off(event: 'finish' | 'close', listener: () => void): this;
  destroy(): unknown;
}

/** What a handler answers an HTTP request with. */
export function responseOf(context: ExecutionContext): ResponseStream | undefined {
  if (context.getType() !== 'http') return undefined;
  const response = context.switchToHttp().getResponse<({ raw?: ResponseStream } & ResponseStream) | undefined>();
  const stream = response?.raw ?? response;
  // Packages that run handlers by an ExternalContextCreator may call their context HTTP and have no response.
  return typeof stream?.once === 'function' ? stream : undefined;
}

/**
 * A handler that returned a stream, or nothing, may have left the response to somebody who still writes to it. Other
 * values are sent at once and as a whole, after the lock was released, so that the next request finds it free.
 */
function isStillSending(response: ResponseStream, value: unknown): boolean {
  if (response.writableEnded || response.destroyed) return false;
  return value === undefined || value instanceof StreamableFile || isStream(value);
}

/** A stream of Node or of the web, or an Express response that the handler gave back. */
function isStream(value: unknown): boolean {
  return typeof value === 'object' && value !== null && ('pipe' in value || 'pipeTo' in value);
}
