import {
  type CallHandler,
  type ExecutionContext,
  Inject,
  Injectable,
  mixin,
  type NestInterceptor,
  StreamableFile,
  type Type,
} from '@nestjs/common';
import { defer, Observable, type Subscriber, type Subscription } from 'rxjs';
import type { Duration } from './core/duration.js';
import { resolveResources } from './core/settings.js';
import type { Hold } from './hold.js';
import type { LockedMethodOptions, LockResource } from './lock-options.interface.js';
import { getLockServiceToken } from './lock-service.token.js';
import type { LockService } from './lock.service.js';
import { holdOr } from './with-lock.decorator.js';

/** What to lock: fixed, or worked out from the execution context. */
export type LockInterceptorKey = LockResource | KeyFunction;

type KeyFunction = (context: ExecutionContext) => LockResource | Promise<LockResource>;

/**
 * Locks a handler from before its pipes run until its response has ended: for HTTP on Express and Fastify, for RPC and
 * WebSocket handlers, and for handlers that return Observables, server-sent events or streams.
 *
 * ```ts
 * @UseInterceptors(LockInterceptor((context) => `cart:${context.switchToHttp().getRequest().params.id}`, '5s'))
 * ```
 *
 * A client that goes away ends the wait for the lock, but not the hold of a handler that still runs.
 *
 * @param key what to lock: a name, several names to take together, or a function of the execution context
 * @param ttl life of the lock without extension, in milliseconds or as text like `'10s'`; default: the module's `ttl`
 * @param options see {@link LockedMethodOptions}
 */
export function LockInterceptor(
  key: LockInterceptorKey,
  ttl?: Duration,
  options: LockedMethodOptions = {},
): Type<NestInterceptor> {
  const fixed = typeof key === 'function' ? undefined : resolveResources('LockInterceptor: key', key);

  @Injectable()
  class LockMixin implements NestInterceptor {
    constructor(@Inject(getLockServiceToken(options.service)) private readonly locks: LockService) {
      locks.check('LockInterceptor', ttl, options);
    }

    intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
      return new Observable((subscriber) => {
        const response = responseOf(context);
        const waiting = new AbortController();
        const stopWaiting = (): void => waiting.abort(new Error('the client has gone'));
        if (response?.destroyed) stopWaiting();
        response?.once('close', stopWaiting);

        const lockedRun = async (): Promise<LockedStream | undefined> => {
          const resources = fixed ?? resolveResources('LockInterceptor: key', await (key as KeyFunction)(context));
          const hold = await holdOr(this.locks, resources, ttl, { ...options, signal: waiting.signal });
          if (!('otherwise' in hold)) return new LockedStream(hold, next, subscriber, response);
          subscriber.next(hold.otherwise);
          subscriber.complete();
          return undefined;
        };
        const started = lockedRun()
          .catch((error: unknown) => {
            subscriber.error(error);
            return undefined;
          })
          .finally(() => response?.off('close', stopWaiting));
        return () => {
          stopWaiting();
          void started.then((stream) => stream?.unsubscribe());
        };
      });
    }
  }
  return mixin(LockMixin);
}

/** A handler's result, passed on under a lock that is given up when the last of it has been delivered. */
class LockedStream {
  private readonly source: Subscription | undefined;
  private last: unknown;
  private emitted = false;
  private over = false;

  constructor(
    private readonly hold: Hold,
    next: CallHandler,
    private readonly subscriber: Subscriber<unknown>,
    private readonly response: ResponseStream | undefined,
  ) {
    if (subscriber.closed) {
      this.over = true;
      void hold.end();
      return;
    }
    hold.lock.signal.addEventListener('abort', this.onLost, { once: true });
    // The context is captured where the handler is asked for, not where its result is read.
    this.source = defer(() => hold.run(() => next.handle())).subscribe({
      next: (value: unknown) => this.pass(value),
      error: (error: unknown) => this.fail(error),
      complete: () => void this.finish(),
    });
    // The result may have been complete before there was a subscription to give up.
    if (this.over) this.source.unsubscribe();
  }

  /** Nobody listens any more. */
  unsubscribe(): void {
    this.source?.unsubscribe();
    if (this.over) return;
    this.over = true;
    this.release();
  }

  private pass(value: unknown): void {
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
    this.source?.unsubscribe();
    this.over = true;
    this.release();
    this.subscriber.error(error);
  }

  /** A promise may still fail with an error of its own, which comes first; a stream would go on as if locked. */
  private readonly onLost = (): void => {
    if (this.over) this.response?.destroy();
    else if (this.emitted) this.fail(this.hold.lock.loss);
  };

  private release(): void {
    this.forget();
    void this.hold.end();
  }

  private forget(): void {
    this.hold.lock.signal.removeEventListener('abort', this.onLost);
  }
}

/** What is used of a Node response. */
interface ResponseStream {
  readonly writableEnded: boolean;
  readonly destroyed: boolean;
  once(event: 'finish' | 'close', listener: () => void): this;
  off(event: 'finish' | 'close', listener: () => void): this;
  destroy(): unknown;
}

function responseOf(context: ExecutionContext): ResponseStream | undefined {
  if (context.getType() !== 'http') return undefined;
  const response = context.switchToHttp().getResponse<{ raw?: ResponseStream } & ResponseStream>();
  return response.raw ?? response;
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
