import type { IncomingMessage, ServerResponse } from 'node:http';
import { BadRequestException, Injectable, type NestMiddleware } from '@nestjs/common';
import { parseTenantId, runFor } from './tenant.js';

/**
 * Takes the tenant from the request. Here it is a header, as a gateway sets it after it has checked who the client is; in
 * an application that checks by itself it is part of the token. A client must not choose it.
 */
@Injectable()
export class TenantMiddleware implements NestMiddleware {
  use(request: IncomingMessage, _response: ServerResponse, next: () => void): void {
    const tenant = parseTenantId(request.headers['x-tenant']);
    if (tenant === undefined) throw new BadRequestException('x-tenant must name a tenant');
    runFor(tenant, next);
  }
}
