import {
  BadRequestException,
  type CallHandler,
  type ExecutionContext,
  HttpException,
  Inject,
  Injectable,
  Logger,
  type NestInterceptor,
  type Type,
} from '@nestjs/common';
import { STATUS_CODES } from 'node:http';
import { isObservable, last, Observable, of, tap } from 'rxjs';
import { isLockError } from '../errors.js';
import { RedlockConfigError } from '../settings/config.error.js';
import type { Duration } from '../settings/duration.js';
import { resolveResources } from '../settings/resources.js';
import { integer, only, optional, type TableOf } from '../settings/table.js';
import {
  checkArguments,
  type LockedMethodOptions,
  type LockInterceptorOptions,
  type LockResource,
  METHOD_OPTIONS,
  optionsOf,
  resolveFixedKey,
} from './lock-options.js';
import { checkLockService, tokenFor } from './lock-service.token.js';
import type { LockService } from './lock.service.js';
import { handlerOf, type HandlerShape, isSentOtherwise, owesAnswer } from './handler-shape.js';
import { HttpExchange } from './http-exchange.js';
import { clientGone, LockedStream } from './locked-stream.js';
import { LOCK_INTERCEPTOR } from './interceptor-check.js';
import { holdSseHeaders, isSse } from './sse-headers.js';
import { acquireOrFallback } from './with-lock.decorator.js';

/** What to lock: fixed, or computed from the execution context. */
export type LockInterceptorKey = LockResource | ((context: ExecutionContext) => LockResource | Promise<LockResource>);

type KeyFunction = Extract<LockInterceptorKey, (context: ExecutionContext) => unknown>;

const STATUS = integer(200, 599);

const OPTIONS = {
  ...METHOD_OPTIONS,
  onLocked: optional(
    only(
      `'throw', a status to send such as { status: 202 }, or a function`,
      (value) => value === 'throw' || typeof value === 'function' || httpStatusOf(value) !== undefined,
    ),
    'throw',
  ),
} satisfies TableOf<LockInterceptorOptions>;

/**
 * Holds a lock from before a handler's pipes run until its response has ended. Works for HTTP on Express and Fastify,
 * for RPC and WebSocket handlers, and for handlers that return Observables, server-sent events or streams.
 *
 * ```ts
 * @UseInterceptors(LockInterceptor((context) => `cart:${context.switchToHttp().getRequest().params.id}`, '5s'))
 * ```
 *
 * The lock ends when the handler has settled and its response has ended, even if the client has left or an interceptor has
 * given up meanwhile. A client that disconnects ends the wait for the lock, without a line in the log (interceptors and
 * filters outside this one see an `HttpException` with the status 499). The same applies to an interceptor that times out, if
 * it is listed before this one, unless it leaves the answer to a handler with `@Res`.
 *
 * An Observable whose listener leaves is torn down, and its lock is released; so is the lock of a stream whose client has
 * left, and that of a generator at its next `yield`.
 *
 * @param key what to lock: a name, several names to acquire together, or a function of the execution context, which may
 * throw an `HttpException`
 * @param options the ttl in milliseconds or as a string such as `'10s'`, or {@link LockInterceptorOptions}; default: those
 * of the module
 * @throws {RedlockConfigError} at class definition, for an invalid key or service name; at boot, for an invalid ttl or
 * option, and on methods for which Nest runs no interceptors, such as `@Cron`, `@OnEvent`, processors of queues, handlers of
 * CQRS, fields of GraphQL and hooks: use `WithLock` there, even if the method is an HTTP handler as well
 *
 * The lock is held when the pipes begin. A handler whose pipes wait for something, such as a database, begins later: look at
 * `lock.isHeld` or pass `lock.signal` there if the process may be blocked for longer than the ttl.
 *
 * Requests fail with the errors of a method under `WithLock`. A stream whose lock is lost ends with `LockLostError`; a
 * response to which a returned stream is still being written is closed.
 */
export function LockInterceptor(
  key: LockInterceptorKey,
  options?: Duration | LockInterceptorOptions,
): Type<NestInterceptor>;
export function LockInterceptor(
  key: LockInterceptorKey,
  options?: Duration | LockInterceptorOptions,
  ...surplus: readonly unknown[]
): Type<NestInterceptor> {
  if ((new.target as unknown) !== undefined) {
    throw new RedlockConfigError('LockInterceptor', key, 'must be called with a key: LockInterceptor(key, options)');
  }
  checkArguments('LockInterceptor', key, surplus);
  const given = optionsOf(options);
  const token = tokenFor('LockInterceptor', given);
  const fixed =
    typeof key === 'function' ? undefined : resolveFixedKey('LockInterceptor', key, 'context: ExecutionContext');

  @Injectable()
  class LockMixin implements NestInterceptor {
    /** The name of this interceptor in error messages. */
    static [LOCK_INTERCEPTOR] = 'LockInterceptor';

    // To send if another holder keeps the resource.
    private readonly status: number | undefined;
    private readonly options: LockedMethodOptions;

    constructor(@Inject(token) private readonly locks: LockService) {
      const where = LockMixin[LOCK_INTERCEPTOR];
      checkLockService(where, locks);
      locks.check(where, given, OPTIONS);
      locks.checkNames(where, fixed ?? [], given);
      const { onLocked, ...others } = given;
      this.status = httpStatusOf(onLocked);
      this.options = this.status === undefined ? (given as LockedMethodOptions) : { ...others, onLocked: 'skip' };
    }

    intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
      return new Observable((subscriber) => {
        const exchange = HttpExchange.of(context);
        const waiting = new AbortController();
        const stopWaiting = (): void => waiting.abort(clientGone());
        if (exchange?.isOver) stopWaiting();
        const stopWatching = exchange?.onOver(stopWaiting);
        const sendHeaders = exchange && isSse(context) ? holdSseHeaders(exchange.response) : undefined;

        const handler = handlerOf(context);
        const { where } = handler;
        let isWaiting = true;

        const lockedRun = async (): Promise<LockedStream | undefined> => {
          const resources = fixed ?? requestKeyOf(where, context, await (key as KeyFunction)(context));
          const hold = await acquireOrFallback(
            this.locks,
            resources,
            { ...this.options, signal: waiting.signal },
            where,
          );
          endOfWait();
          if (!('otherwise' in hold)) return new LockedStream(hold, next, subscriber, exchange, handler);
          const { otherwise } = hold;
          const results = isObservable(otherwise) ? otherwise : of(otherwise);
          (exchange ? answers(context, handler, this.status, results) : results).subscribe(
            isLeft() ? { error: cutOff } : subscriber,
          );
          return undefined;
        };
        // What gave up has left the answer to the handler.
        const isLeft = (): boolean => subscriber.closed && owesAnswer(handler, exchange);
        const cutOff = (): void => exchange?.cutOff();
        const endOfWait = (): void => {
          isWaiting = false;
          stopWatching?.();
          sendHeaders?.();
        };
        const started = lockedRun().catch((error: unknown) => {
          endOfWait();
          if (isLeft()) cutOff();
          subscriber.error(error);
          return undefined;
        });
        return () => {
          // The handler runs in its turn.
          if (isWaiting && owesAnswer(handler, exchange)) return;
          endOfWait();
          stopWaiting();
          void started.then((stream) => stream?.unsubscribe());
        };
      });
    }
  }
  // Nest shows the name if it cannot create the class, for example because the module is missing.
  return Object.defineProperty(LockMixin, 'name', { value: LockInterceptor.name });
}

// With an invalid key, the request lacks what the key is made of, or has something else in its place: a client that can
// be answered with an HTTP status gets 400.
function requestKeyOf(where: string, context: ExecutionContext, key: unknown): readonly string[] {
  try {
    return resolveResources(`${where}: key`, key);
  } catch (error) {
    const hasHttpClient = context.getType<string>() === 'graphql' || HttpExchange.of(context) !== undefined;
    if (!isLockError(error, 'LOCK_CONFIG') || !hasHttpClient) throw error;
    new Logger('LockInterceptor').debug(
      `${error.message}. The client gets 400 Bad Request: if its request was complete, check what the key function reads`,
    );
    throw new BadRequestException(undefined, { cause: error, description: 'Bad Request' });
  }
}

function httpStatusOf(onLocked: unknown): number | undefined {
  try {
    return STATUS('status', (onLocked as { readonly status?: unknown }).status);
  } catch {
    // Another value, such as null, or an object that cannot be read.
    return undefined;
  }
}

// Nest sends nothing itself for a handler that has the response, and something else under these decorators.
function answers(
  context: ExecutionContext,
  handler: HandlerShape,
  status: number | undefined,
  results: Observable<unknown>,
): Observable<unknown> {
  if (status !== undefined && isSentOtherwise(context.getHandler())) {
    throw new HttpException(STATUS_CODES[status] ?? '', status);
  }
  // Express and Fastify both have these.
  const response = context
    .switchToHttp()
    .getResponse<{ status(code: number): unknown; send(body: unknown): unknown }>();
  if (status !== undefined) response.status(status);
  return handler.answersItself
    ? results.pipe(
        last(null, undefined),
        tap((result) => response.send(result)),
      )
    : results;
}
