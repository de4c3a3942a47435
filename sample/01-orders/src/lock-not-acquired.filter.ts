import type { ServerResponse } from 'node:http';
import { type ArgumentsHost, Catch, HttpException } from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';
import { LockNotAcquiredError } from 'nestjs-redlock';

/** HTTP counts in whole seconds, and 0 would bring the client back too early. */
const SHORTEST_DELAY = 1;

/**
 * Sends the client a `Retry-After` header.
 *
 * Without this filter Nest also answers 423, because the error carries its status. Only `Retry-After` would be missing,
 * and the message would be the standard one.
 */
@Catch(LockNotAcquiredError)
export class LockNotAcquiredFilter extends BaseExceptionFilter {
  override catch(error: LockNotAcquiredError, host: ArgumentsHost): void {
    const seconds = Math.max(SHORTEST_DELAY, Math.ceil((error.retryAfter ?? 0) / 1000));
    host.switchToHttp().getResponse<ServerResponse>().setHeader('Retry-After', String(seconds));
    const { statusCode, code } = error;
    super.catch(
      new HttpException({ statusCode, code, message: 'Another request is working on this' }, statusCode),
      host,
    );
  }
}
