import { type ArgumentsHost, Catch, type ExceptionFilter, Inject, Logger, Optional } from '@nestjs/common';
import { STATUS_CODES } from 'node:http';
import { throwError } from 'rxjs';
import { isLockError } from '../errors.js';
import type { LockError } from '../redlock/errors.js';
import { integer, optional, readOptions, type TableOf } from '../settings/table.js';

/** Options of {@link LockExceptionFilter}. */
export interface LockExceptionFilterOptions {
  /**
   * HTTP status of a request whose resource another holder keeps, from 400 to 599: for clients and proxies that retry a
   * 503 and do not know 423.
   * @default 423
   */
  readonly lockedStatus?: number;
}

// Also matches errors of another copy of this package: Nest selects a filter by `instanceof`.
abstract class AnyLockError extends Error {
  static override [Symbol.hasInstance](error: unknown): boolean {
    return isLockError(error);
  }
}

// No provider has this token: a filter that Nest creates has no options.
const OPTIONS = Symbol('nestjs-redlock:lock-exception-filter-options');
// In milliseconds without a request that has failed because of the outage.
const OUTAGE_ENDS_AFTER = 60_000;
// In milliseconds: 0 would bring the client back too early.
const SHORTEST_DELAY = 1_000;

// As far as Express and Fastify have the same methods.
interface Response {
  status(code: number): this;
  header(name: string, value: string): this;
  send(body: object): unknown;
  readonly headersSent?: boolean;
  readonly raw?: { readonly headersSent: boolean; end(): unknown };
  end?(): unknown;
}

// Of the packages ws or socket.io.
interface Socket {
  readonly readyState?: unknown;
  send(text: string): unknown;
  emit(event: string, payload: object): unknown;
}

const TABLE = {
  lockedStatus: optional(integer(400, 599, 'an HTTP status'), 423),
} satisfies TableOf<LockExceptionFilterOptions>;

/**
 * Answers requests that could not acquire their lock, and keeps contention out of the log.
 *
 * ```ts
 * app.useGlobalFilters(new LockExceptionFilter()); // or a provider: { provide: APP_FILTER, useClass: LockExceptionFilter }
 * ```
 *
 * | error                     | HTTP status                    | log                                                  |
 * | ------------------------- | ------------------------------ | ---------------------------------------------------- |
 * | `LockNotAcquiredError`    | 423, or that of `lockedStatus` | debug                                                |
 * | `QuorumUnavailableError`  | 503                            | a warning for the first one of an outage, then debug |
 * | `LockServiceStoppedError` | 503                            | debug                                                |
 * | others of this package    | as without the filter          | error                                                |
 *
 * The body is `{ statusCode, message, code }` with the standard text of the status: no resources, holders or addresses. The
 * first three have a `Retry-After` header in whole seconds.
 *
 * Clients of other protocols get `message`, `code` and `retryAfter`, in milliseconds: as an error of a microservice, as the
 * event `exception` of a WebSocket, in GraphQL as an error with the last two in its `extensions`. In a context of any other
 * type, the error is rethrown.
 *
 * Nest asks the filter that was registered last first: register this one after a filter that catches everything.
 */
@Catch(AnyLockError)
export class LockExceptionFilter implements ExceptionFilter {
  private readonly logger = new Logger(LockExceptionFilter.name);
  private readonly lockedStatus: number;
  // By the monotonic clock.
  private lastOutage = -Infinity;

  /** @throws {RedlockConfigError} for an invalid option */
  constructor(@Optional() @Inject(OPTIONS) options: LockExceptionFilterOptions = {}) {
    this.lockedStatus = readOptions('LockExceptionFilter', options, TABLE).lockedStatus;
  }

  /**
   * Called by Nest.
   */
  catch(error: LockError, host: ArgumentsHost): unknown {
    this.log(error);
    const { code } = error;
    const statusCode = code === 'LOCK_NOT_ACQUIRED' ? this.lockedStatus : error.statusCode;
    const message = STATUS_CODES[statusCode] ?? 'Error';
    const retryAfter = delayOf(error);
    const details = { code, ...(retryAfter !== undefined && { retryAfter }) };
    switch (host.getType<string>()) {
      case 'rpc':
        return throwError(() => ({ status: 'error', message, ...details }));
      case 'ws':
        emit(host, { status: 'error', message, ...details });
        return undefined;
      case 'graphql':
        throw Object.assign(new Error(message, { cause: error }), { extensions: details });
    }
    const response = responseOf(host);
    if (!response) throw error;
    if (response.headersSent ?? response.raw?.headersSent) {
      end(response);
      return undefined;
    }
    response.status(statusCode);
    if (retryAfter !== undefined) response.header('Retry-After', String(Math.ceil(retryAfter / 1000)));
    response.send({ statusCode, message, code });
    return undefined;
  }

  private log(error: LockError): void {
    if (delayOf(error) === undefined) {
      this.logger.error(error.message, error.stack);
      return;
    }
    const isOutage = error.code === 'QUORUM_UNAVAILABLE';
    const now = performance.now();
    const isNew = isOutage && now - this.lastOutage > OUTAGE_ENDS_AFTER;
    if (isOutage) this.lastOutage = now;
    if (isNew) this.logger.warn(error.message);
    else this.logger.debug(error.message);
  }
}

// In milliseconds; `undefined` for an error that another try does not mend.
function delayOf(error: LockError): number | undefined {
  if (isLockError(error, 'LOCK_NOT_ACQUIRED')) return Math.max(SHORTEST_DELAY, error.retryAfter ?? 0);
  const isPassing = ['QUORUM_UNAVAILABLE', 'LOCK_SERVICE_STOPPED'].includes(error.code);
  return isPassing ? SHORTEST_DELAY : undefined;
}

// A package that runs handlers by itself may have a context without a response.
function responseOf(host: ArgumentsHost): Response | undefined {
  if (host.getType() !== 'http') return undefined;
  const response = host.switchToHttp().getResponse<Partial<Response> | undefined>();
  return typeof response?.status === 'function' && typeof response.send === 'function'
    ? (response as Response)
    : undefined;
}

function end(response: Response): void {
  if (response.raw) response.raw.end();
  else response.end?.();
}

// What Nest's own filter for WebSockets sends.
function emit(host: ArgumentsHost, failure: object): void {
  const ws = host.switchToWs();
  const client = ws.getClient<Socket>();
  const payload = { ...failure, cause: { pattern: ws.getPattern(), data: ws.getData<unknown>() } };
  // A socket of the package ws has an `emit`, too, which reaches only listeners of this process.
  if (typeof client.readyState === 'number') client.send(JSON.stringify({ event: 'exception', data: payload }));
  else client.emit('exception', payload);
}
