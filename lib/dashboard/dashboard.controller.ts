import type { IncomingHttpHeaders } from 'node:http';
import {
  BadRequestException,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Inject,
  Injectable,
  NotFoundException,
  Param,
  Post,
  Query,
  Req,
  Res,
  type Type,
  UnsupportedMediaTypeException,
  UseGuards,
  VERSION_NEUTRAL,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { inspections } from '../internal.js';
import { Dashboard } from './dashboard.js';
import type { DashboardGuard, Placement } from './options.js';
import { PAGE } from './page.generated.js';
import { refuseOtherPages } from './hosts.js';

// The page loads nothing from elsewhere, has no inline code, and is never part of another page.
const POLICY = [
  ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self'"],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
].join('; ');

const HEADERS = {
  'Content-Security-Policy': POLICY,
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
} as const;

// A form cannot send JSON, and another page needs a CORS preflight for it.
function refuseForgedAction(headers: IncomingHttpHeaders, origins: readonly string[]): void {
  refuseOtherPages(headers, origins);
  if (!/^application\/json *(?:;|$)/i.test(headers['content-type'] ?? '')) {
    throw new UnsupportedMediaTypeException('the body of an action must be application/json');
  }
}

interface HttpRequest {
  readonly headers: IncomingHttpHeaders;
  readonly body?: unknown;
}

// Comes before the guards of the dashboard.
@Injectable()
class HostGuard implements CanActivate {
  constructor(@Inject(Dashboard) private readonly dashboard: Dashboard) {}

  canActivate(context: ExecutionContext): boolean {
    this.dashboard.checkHost(context.switchToHttp().getRequest<HttpRequest>().headers);
    return true;
  }
}

// All its addresses are relative to its path, which neither a global prefix nor a proxy in front of the application
// changes.
export function dashboardController({ path, guards }: Placement): Type {
  @Controller({ path, version: VERSION_NEUTRAL })
  @UseGuards(HostGuard, ...(guards as DashboardGuard[]))
  class RedlockDashboardController {
    constructor(
      @Inject(Dashboard) private readonly dashboard: Dashboard,
      @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
    ) {}

    @Get()
    open(@Req() request: HttpRequest, @Res() response: unknown): void {
      const { httpAdapter } = this.host;
      const [address = ''] = String(httpAdapter.getRequestUrl(request)).split('?');
      // Relative to the folder of the address: its last segment, unless it ends with a slash.
      const last = address.slice(address.lastIndexOf('/') + 1);
      this.setHeaders(response);
      httpAdapter.redirect(response, 302, `${last && `${last}/`}page/index.html`);
    }

    @Get('page/:file')
    file(@Param('file') name: string, @Res() response: unknown): void {
      const file = PAGE.get(name);
      if (!file) throw new NotFoundException('the dashboard has no such file');
      this.send(response, file.type, file.content);
    }

    @Get('api/state')
    async state(
      @Req() { headers }: HttpRequest,
      @Query() query: Readonly<Record<string, unknown>>,
      @Res() response: unknown,
    ): Promise<void> {
      refuseOtherPages(headers, this.dashboard.origins);
      const [log, after] = [textOf(query, 'log'), Number(textOf(query, 'after'))];
      this.sendJson(response, await this.dashboard.state({ log, after: after || 0 }));
    }

    @Get('api/inspect')
    async inspect(
      @Req() { headers }: HttpRequest,
      @Query() query: Readonly<Record<string, unknown>>,
      @Res() response: unknown,
    ): Promise<void> {
      refuseOtherPages(headers, this.dashboard.origins);
      this.sendJson(response, await this.dashboard.inspect(serviceIn(query), targetIn(query)));
    }

    @Post('api/release')
    async release(@Req() request: HttpRequest, @Res() response: unknown): Promise<void> {
      refuseForgedAction(request.headers, this.dashboard.origins);
      const { body } = request;
      if (typeof body !== 'object' || body === null) throw new BadRequestException('the body must be a JSON object');
      const wanted = { target: targetIn(body), ticket: textOf(body, 'ticket'), confirm: textOf(body, 'confirm') };
      this.sendJson(response, await this.dashboard.release(serviceIn(body), request, wanted));
    }

    private sendJson(response: unknown, value: object): void {
      this.send(response, 'application/json; charset=utf-8', JSON.stringify(value));
    }

    private send(response: unknown, type: string, content: string): void {
      this.setHeaders(response);
      this.host.httpAdapter.setHeader(response, 'Content-Type', type);
      this.host.httpAdapter.reply(response, content, 200);
    }

    private setHeaders(response: unknown): void {
      for (const [name, value] of Object.entries(HEADERS)) this.host.httpAdapter.setHeader(response, name, value);
    }
  }
  return RedlockDashboardController;
}

function textOf(values: object, name: string): string {
  const value: unknown = Reflect.get(values, name);
  return typeof value === 'string' ? value : '';
}

function targetIn(values: object): inspections.Target {
  const [resource, slot] = [textOf(values, 'resource'), textOf(values, 'slot')];
  if (slot === '') return { resource };
  if (!/^\d{1,3}$/.test(slot)) throw new BadRequestException('slot must be that of a permit, from 0 to 999');
  return { resource, slot: Number(slot) };
}

// The service without a name is sent as an empty string.
function serviceIn(values: object): string | null {
  return textOf(values, 'service') || null;
}
