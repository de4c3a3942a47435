import { type ArgumentsHost, Catch } from '@nestjs/common';
import { BaseWsExceptionFilter, WsException } from '@nestjs/websockets';
import { LockNotAcquiredError } from 'nestjs-redlock';

/**
 * Tells the client why nothing happened, as an event `exception`. Without this filter it would be told "Internal server
 * error", like after any error that is no `WsException`.
 */
@Catch(LockNotAcquiredError)
export class LockedFilter extends BaseWsExceptionFilter {
  override catch({ code, retryAfter }: LockNotAcquiredError, host: ArgumentsHost): void {
    const ws = host.switchToWs();
    // What the message was: a client may have sent several, and answers have no number.
    const cause = { pattern: ws.getPattern(), data: ws.getData<unknown>() };
    const message = 'Somebody else is publishing this document';
    super.catch(new WsException({ status: 'error', code, message, retryAfter, cause }), host);
  }
}
