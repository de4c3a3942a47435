import { Catch } from '@nestjs/common';
import type { GqlExceptionFilter } from '@nestjs/graphql';
import { GraphQLError } from 'graphql';
import { LockNotAcquiredError } from 'nestjs-redlock';

/**
 * Gives the client a code to look at and a time to come back. Without this filter it gets `INTERNAL_SERVER_ERROR`, and a
 * message that names the masters.
 */
@Catch(LockNotAcquiredError)
export class LockedFilter implements GqlExceptionFilter {
  catch({ code, retryAfter }: LockNotAcquiredError): GraphQLError {
    return new GraphQLError('Somebody else is working on this', { extensions: { code, retryAfter } });
  }
}
