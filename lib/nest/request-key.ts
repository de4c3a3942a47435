import { BadRequestException, type ExecutionContext, Logger } from '@nestjs/common';
import { RedlockConfigError } from '../core/errors.js';
import { resolveComputedKey } from './lock-key.js';
import { responseOf } from './locked-stream.js';

/**
 * Validates a key that the function of an interceptor has computed from a request.
 *
 * @throws {BadRequestException} for an invalid key, if the client can be answered with an HTTP status: the request lacks
 * what the key is made of, or has something else in its place
 * @throws {RedlockConfigError} for an invalid key, for a client of another protocol
 */
export function requestKeyOf(context: ExecutionContext, key: unknown): readonly string[] {
  try {
    return resolveComputedKey(`LockInterceptor on ${context.getClass().name}.${context.getHandler().name}`, key);
  } catch (error) {
    if (!(error instanceof RedlockConfigError) || !hasHttpClient(context)) throw error;
    new Logger('LockInterceptor').debug(
      `${error.message}. The client gets 400 Bad Request: if its request was complete, check what the key function reads`,
    );
    throw new BadRequestException(undefined, { cause: error, description: 'Bad Request' });
  }
}

function hasHttpClient(context: ExecutionContext): boolean {
  return context.getType<string>() === 'graphql' || responseOf(context) !== undefined;
}
