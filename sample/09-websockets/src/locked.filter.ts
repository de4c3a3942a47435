import { type ArgumentsHost, Catch } from '@nestjs/common';
import { BaseWsExceptionFilter, WsException } from '@nestjs/websockets';
import { LockNotAcquiredError } from 'nestjs-redlock';

/**
 * Sends the client the reason as an event `exception`. Without this filter, the client would get "Internal server
 * error", as for any error other than a `WsException`.
 */
@Catch(LockNotAcquiredError)
export class LockedFilter extends BaseWsExceptionFilter {
  override catch({ code, retryAfter }: LockNotAcquiredError, host: ArgumentsHost): void {
    const ws = host.switchToWs();
    // Identifies the message, because a client may have sent several and answers have no number.
    const cause = { pattern: ws.getPattern(), data: ws.getData<unknown>() };
    const message = 'Another request is publishing this document';
    super.catch(new WsException({ status: 'error', code, message, retryAfter, cause }), host);
  }
}
