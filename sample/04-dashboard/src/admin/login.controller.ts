import type { ServerResponse } from 'node:http';
import { Body, Controller, Get, Header, Post, Redirect, Res, UnauthorizedException } from '@nestjs/common';
import { Session } from './session.js';

const FORM = '<form method="post"><label>Password <input type="password" name="password" autofocus></label></form>';

@Controller('login')
export class LoginController {
  constructor(private readonly session: Session) {}

  @Get()
  @Header('content-type', 'text/html; charset=utf-8')
  form(): string {
    return FORM;
  }

  @Post()
  @Redirect('/admin/locks', 303)
  signIn(@Body('password') password: unknown, @Res({ passthrough: true }) response: ServerResponse): void {
    const cookie = this.session.open(String(password));
    if (!cookie) throw new UnauthorizedException('This is not the password');
    response.setHeader('set-cookie', cookie);
  }
}
