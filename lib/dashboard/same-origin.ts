import { ForbiddenException, UnsupportedMediaTypeException } from '@nestjs/common';
import type { IncomingHttpHeaders } from 'node:http';
import { hostOf } from './hosts.js';

/** The page sends it with each request. Another site cannot without the permission of this server (a CORS preflight). */
export const PAGE_HEADER = 'x-redlock-dashboard';

/**
 * Data and actions are for the page of the dashboard only, even if the application allows other origins by CORS.
 *
 * @param origins where the page is besides the `Host` of the request
 * @throws {ForbiddenException} if the request may come from another page than the dashboard
 */
export function refuseOtherPages(headers: IncomingHttpHeaders, origins: readonly string[]): void {
  if (headers[PAGE_HEADER] === undefined) {
    throw new ForbiddenException(`only the page of the dashboard may ask, with the header ${PAGE_HEADER}`);
  }
  const { origin, 'sec-fetch-site': site } = headers;
  // Browsers send it on HTTPS and to the own machine, and no page can change it.
  if (site !== undefined) {
    if (site !== 'same-origin') throw new ForbiddenException('only the page of the dashboard may ask');
  } else if (origin !== undefined && !isOwn(origin, hostOf(headers), origins)) {
    throw new ForbiddenException(
      'only the page of the dashboard may ask: behind a proxy that changes Host, its origin belongs into the option origins',
    );
  }
}

/**
 * @throws {ForbiddenException} if the request may come from another page than the dashboard
 * @throws {UnsupportedMediaTypeException} unless the body is JSON
 */
export function refuseForgedAction(headers: IncomingHttpHeaders, origins: readonly string[]): void {
  refuseOtherPages(headers, origins);
  if (!/^application\/json *(?:;|$)/i.test(headers['content-type'] ?? '')) {
    throw new UnsupportedMediaTypeException('the body of an action must be application/json');
  }
}

/** A page cannot change `Origin` and `Host`. It can set every other header that CORS permits. */
function isOwn(origin: string, host: string | undefined, origins: readonly string[]): boolean {
  return origins.includes(origin) || (URL.canParse(origin) && new URL(origin).host === host);
}
