import { Catch } from '@nestjs/common';
import type { GqlExceptionFilter } from '@nestjs/graphql';
import { GraphQLError } from 'graphql';
import { LockNotAcquiredError } from 'nestjs-redlock';

/**
 * Gives the client an error code and a retry time. Without this filter, the client gets `INTERNAL_SERVER_ERROR` and a
 * message that names the masters.
 */
@Catch(LockNotAcquiredError)
export class LockedFilter implements GqlExceptionFilter {
  catch({ code, retryAfter }: LockNotAcquiredError): GraphQLError {
    return new GraphQLError('Another request is working on this', { extensions: { code, retryAfter } });
  }
}
