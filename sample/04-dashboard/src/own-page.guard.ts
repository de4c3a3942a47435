import type { IncomingMessage } from 'node:http';
import { type CanActivate, type ExecutionContext, ForbiddenException, Injectable } from '@nestjs/common';

/**
 * Lets in the page of this server and nobody else's. Whoever opens any other page in the same browser would otherwise
 * let that page send requests to this port, and they kill processes.
 */
@Injectable()
export class OwnPageGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers, method, socket } = context.switchToHttp().getRequest<IncomingMessage>();
    // Another name that leads here belongs to somebody who has pointed it here (DNS rebinding).
    const names = ['127.0.0.1', 'localhost'].map((name) => `${name}:${socket.localPort}`);
    if (!headers.host || !names.includes(headers.host)) throw new ForbiddenException(`ask for ${names.join(' or ')}`);
    if (method === 'GET') return true;
    // A browser says in every POST which page sends it, and no page can make it say something else.
    if (headers.origin !== `http://${headers.host}`) throw new ForbiddenException('only the page of this server may');
    return true;
  }
}
