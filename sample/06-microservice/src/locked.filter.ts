import { type ArgumentsHost, Catch } from '@nestjs/common';
import { BaseRpcExceptionFilter, RpcException } from '@nestjs/microservices';
import { LockNotAcquiredError } from 'nestjs-redlock';
import type { Observable } from 'rxjs';

/** The answer to a caller while another request works on the account. */
export interface Locked {
  status: 'error';
  code: LockNotAcquiredError['code'];
  message: string;
  /** Milliseconds, if the masters reported the remaining time. */
  retryAfter?: number;
}

/**
 * Without this filter, the caller would get "Internal server error", as for any error other than an `RpcException`.
 * That message does not indicate that a retry helps.
 */
@Catch(LockNotAcquiredError)
export class LockedFilter extends BaseRpcExceptionFilter {
  override catch({ code, retryAfter }: LockNotAcquiredError, host: ArgumentsHost): Observable<unknown> {
    const message = 'Another request is working on this account';
    const answer: Locked = { status: 'error', code, message, ...(retryAfter !== undefined && { retryAfter }) };
    return super.catch(new RpcException(answer), host);
  }
}
