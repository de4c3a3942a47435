import { type ArgumentsHost, Catch } from '@nestjs/common';
import { BaseRpcExceptionFilter, RpcException } from '@nestjs/microservices';
import { LockNotAcquiredError } from 'nestjs-redlock';
import type { Observable } from 'rxjs';

/** What a caller gets when somebody else works on the account. */
export interface Locked {
  status: 'error';
  code: LockNotAcquiredError['code'];
  message: string;
  /** Milliseconds, if the masters told. */
  retryAfter?: number;
}

/**
 * Without this filter the caller would be told "Internal server error", like after any error that is no `RpcException`:
 * nothing in there says that trying again helps.
 */
@Catch(LockNotAcquiredError)
export class LockedFilter extends BaseRpcExceptionFilter {
  override catch({ code, retryAfter }: LockNotAcquiredError, host: ArgumentsHost): Observable<unknown> {
    const message = 'Somebody else is working on this account';
    const answer: Locked = { status: 'error', code, message, ...(retryAfter !== undefined && { retryAfter }) };
    return super.catch(new RpcException(answer), host);
  }
}
