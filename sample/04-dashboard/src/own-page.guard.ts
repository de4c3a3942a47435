import type { IncomingMessage } from 'node:http';
import { type CanActivate, type ExecutionContext, ForbiddenException, Injectable } from '@nestjs/common';

/**
 * Admits only the page of this server. Otherwise any other page in the same browser could send requests to this port,
 * and these requests kill processes.
 */
@Injectable()
export class OwnPageGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers, method, socket } = context.switchToHttp().getRequest<IncomingMessage>();
    // Any other host name that leads here is an attack (DNS rebinding).
    const names = ['127.0.0.1', 'localhost'].map((name) => `${name}:${socket.localPort}`);
    if (!headers.host || !names.includes(headers.host)) throw new ForbiddenException(`ask for ${names.join(' or ')}`);
    if (method === 'GET') return true;
    // A browser names the origin of every POST, and a page cannot change it.
    if (headers.origin !== `http://${headers.host}`) throw new ForbiddenException('only the page of this server may');
    return true;
  }
}
