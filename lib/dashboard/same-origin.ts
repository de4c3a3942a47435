import { ForbiddenException, UnsupportedMediaTypeException } from '@nestjs/common';
import type { IncomingHttpHeaders } from 'node:http';

/** The page sends it with an action. Another site cannot without the permission of this server (a CORS preflight). */
export const ACTION_HEADER = 'x-redlock-dashboard';

/**
 * Data is for the page of the dashboard only, even if the application allows other origins by CORS.
 *
 * @throws {ForbiddenException} if a page of another origin sends the request
 */
export function refuseOtherOrigins(headers: IncomingHttpHeaders): void {
  // Browsers send it on HTTPS and to the own machine, and no page can change it.
  const site = headers['sec-fetch-site'];
  if (site !== undefined) {
    if (site !== 'same-origin' && site !== 'none') throw new ForbiddenException('only the page of the dashboard may');
    return;
  }
  const { origin, host } = headers;
  if (origin === undefined) return;
  // A page cannot change either of them, and a proxy may have replaced the first.
  const hosts = [host, ...String(headers['x-forwarded-host'] ?? '').split(',')].map((each) => each?.trim());
  if (!hosts.includes(hostOf(origin))) throw new ForbiddenException('only the page of the dashboard may');
}

/**
 * @throws {ForbiddenException} if the request may come from another page than the dashboard
 * @throws {UnsupportedMediaTypeException} unless the body is JSON
 */
export function refuseForgedAction(headers: IncomingHttpHeaders): void {
  refuseOtherOrigins(headers);
  if (headers['sec-fetch-site'] === 'none' || headers[ACTION_HEADER] === undefined) {
    throw new ForbiddenException(`actions need the header ${ACTION_HEADER}`);
  }
  if (!/^application\/json *(?:;|$)/i.test(headers['content-type'] ?? '')) {
    throw new UnsupportedMediaTypeException('the body of an action must be application/json');
  }
}

function hostOf(origin: string): string | undefined {
  try {
    return new URL(origin).host;
  } catch {
    return undefined;
  }
}
