import { type CanActivate, type ExecutionContext, Injectable, UnauthorizedException } from '@nestjs/common';
import { Session } from './session.js';

/** Reads a cookie, because a browser that follows a link sends no other header. */
@Injectable()
export class AdminGuard implements CanActivate {
  constructor(private readonly session: Session) {}

  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<{ headers: { cookie?: string } }>();
    if (!this.session.has(headers.cookie)) throw new UnauthorizedException('Sign in at /login');
    return true;
  }
}
