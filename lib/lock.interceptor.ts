import {
  type CallHandler,
  type ExecutionContext,
  HttpException,
  Inject,
  Injectable,
  mixin,
  type NestInterceptor,
  type Type,
} from '@nestjs/common';
import { Observable } from 'rxjs';
import type { Duration } from './core/duration.js';
import { resolveResources } from './core/resources.js';
import type { LockedMethodOptions, LockResource } from './lock-options.interface.js';
import { checkLockService, tokenFor } from './lock-service.token.js';
import type { LockService } from './lock.service.js';
import { LockedStream, responseOf, returnsObservable } from './locked-stream.js';
import { LOCK_INTERCEPTOR } from './unintercepted-handlers.js';
import { holdOr } from './with-lock.decorator.js';

/** The status that proxies log for a client that left before its answer. */
const CLIENT_CLOSED_REQUEST = 499;

/** What to lock: fixed, or worked out from the execution context. */
export type LockInterceptorKey = LockResource | ((context: ExecutionContext) => LockResource | Promise<LockResource>);

type KeyFunction = Extract<LockInterceptorKey, (context: ExecutionContext) => unknown>;

/**
 * Locks a handler from before its pipes run until its response has ended: for HTTP on Express and Fastify, for RPC and
 * WebSocket handlers, and for handlers that return Observables, server-sent events or streams.
 *
 * ```ts
 * @UseInterceptors(LockInterceptor((context) => `cart:${context.switchToHttp().getRequest().params.id}`, '5s'))
 * ```
 *
 * A client that goes away ends the wait for the lock, without a line in the log (interceptors and filters outside this
 * one see an `HttpException` with the status 499), but not the hold of a handler that still runs. The same goes for an
 * interceptor that gives up waiting, if it is listed before this one: one inside the lock ends it with its error.
 *
 * A stream that lost its listener is torn down, and its lock released. Nest does not show whether a handler that has
 * given nothing yet runs a promise, which needs its lock until it settles, or is an Observable: it is taken for one if
 * its declared return type is `Observable` (or a `Subject`), and otherwise from its first value on. So declare it where
 * the first value may be late.
 *
 * @param key what to lock: a name, several names to take together, or a function of the execution context
 * @param ttl life of the lock without extension, in milliseconds or as text like `'10s'`; default: the module's `ttl`
 * @param options see {@link LockedMethodOptions}
 * @throws {RedlockConfigError} at class definition, for a key or a service name that cannot work; at boot, for a ttl or
 * an option that cannot work, and on what Nest runs no interceptors for, such as `@Cron`, `@OnEvent` and queue
 * processors: use `WithLock` there, also for a method that is an HTTP handler as well
 *
 * Requests then fail with the errors of a method under `WithLock`. A stream whose lock is lost ends with
 * `LockLostError`; one that the handler has handed over is closed.
 */
export function LockInterceptor(
  key: LockInterceptorKey,
  ttl?: Duration,
  options: LockedMethodOptions = {},
): Type<NestInterceptor> {
  const token = tokenFor('LockInterceptor', options);
  const fixed = typeof key === 'function' ? undefined : resolveResources('LockInterceptor: key', key);

  @Injectable()
  class LockMixin implements NestInterceptor {
    static readonly [LOCK_INTERCEPTOR] = true;

    constructor(@Inject(token) private readonly locks: LockService) {
      checkLockService('LockInterceptor', locks);
      locks.check('LockInterceptor', ttl, options);
    }

    intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
      return new Observable((subscriber) => {
        const response = responseOf(context);
        const waiting = new AbortController();
        // Nest answers an HttpException without a line in the log, and a status of the client's is no fault of the server.
        const stopWaiting = (): void => waiting.abort(new HttpException('the client has gone', CLIENT_CLOSED_REQUEST));
        if (response?.destroyed) stopWaiting();
        response?.once('close', stopWaiting);

        const lockedRun = async (): Promise<LockedStream | undefined> => {
          const resources = fixed ?? resolveResources('LockInterceptor: key', await (key as KeyFunction)(context));
          const hold = await holdOr(this.locks, resources, ttl, { ...options, signal: waiting.signal });
          if (!('otherwise' in hold))
            return new LockedStream(hold, next, subscriber, response, returnsObservable(context));
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
