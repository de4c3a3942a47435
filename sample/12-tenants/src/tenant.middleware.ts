import type { IncomingMessage, ServerResponse } from 'node:http';
import { BadRequestException, Injectable, type NestMiddleware } from '@nestjs/common';
import { parseTenantId, runFor } from './tenant.js';

/**
 * Reads the tenant from the request. In this sample, a gateway sets a header after it has authenticated the client. In
 * an application that authenticates clients itself, the tenant is part of the token. A client must not choose it.
 */
@Injectable()
export class TenantMiddleware implements NestMiddleware {
  use(request: IncomingMessage, _response: ServerResponse, next: () => void): void {
    const tenant = parseTenantId(request.headers['x-tenant']);
    if (tenant === undefined) throw new BadRequestException('x-tenant must name a tenant');
    runFor(tenant, next);
  }
}
