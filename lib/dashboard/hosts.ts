import { ForbiddenException } from '@nestjs/common';
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { schema } from '../internal.js';

// A name or an address, and a port.
const HOST = /^(\[[\da-f:.]+\]|[\p{L}\p{M}\p{N}._-]+)(?::\d*)?$/iu;
// In an element of `Forwarded`.
const FORWARDED_HOST = /(?:^|[;,\s])host\s*=\s*("[^"]*"|[^;,\s]*)/gi;

// In lower case.
export const hostName = schema.from(
  "the name of a host alone, such as 'admin.example.com', without scheme, port, path and wildcard: any port counts",
  (host) => {
    // A dot at the beginning is meant as a pattern.
    const isAlone = typeof host === 'string' && (isAddress(host) || !/^\.|:/.test(host));
    return isAlone ? nameIn(host) : undefined;
  },
);

// A page of another site whose name is bound to the address of this server counts as its own for a browser (DNS
// rebinding). Only the name in `Host` shows it, which no page can change. An address cannot be bound to another one,
// and `localhost` is a name that cannot be registered. What proxies forward can only refuse, because a page can set it.
export function refuseOtherHosts(headers: IncomingHttpHeaders, hosts: readonly string[]): void {
  const asked = hostOf(headers);
  for (const host of [asked, ...forwardedHosts(headers)]) {
    const name = host === undefined ? undefined : nameIn(host);
    if (name !== undefined && (isOfNoSite(name) || hosts.includes(name))) continue;
    throw new ForbiddenException(
      `the dashboard is not served under the host name of this request: name it in the option hosts of ` +
        `RedlockDashboardModule, as in hosts: ['admin.example.com'], or open the page by an IP address or localhost`,
    );
  }
}

// HTTP/2 has it in a header of its own.
function hostOf(headers: IncomingHttpHeaders): string | undefined {
  const authority = headers[':authority'];
  return typeof authority === 'string' ? authority : headers.host;
}

function forwardedHosts(headers: IncomingHttpHeaders): string[] {
  const { 'x-forwarded-host': hosts = [], forwarded = '' } = headers;
  const standard = [...forwarded.matchAll(FORWARDED_HOST)].map(([, host = '']) => host.replace(/^"|"$/g, ''));
  const usual = [hosts].flat().flatMap((list) => list.split(','));
  return [...usual, ...standard].map((host) => host.trim()).filter((host) => host !== '');
}

// Without its port, as a browser would write it.
function nameIn(host: string): string | undefined {
  const bracketed = isIP(host) === 6 ? `[${host}]` : host;
  const [, name] = HOST.exec(bracketed) ?? [];
  if (name === undefined || !URL.canParse(`http://${name}`)) return undefined;
  return new URL(`http://${name}`).hostname.replace(/\.$/, '') || undefined;
}

function isOfNoSite(name: string): boolean {
  return isAddress(name) || /^(?:.+\.)?localhost$/.test(name);
}

// With or without brackets.
function isAddress(name: string): boolean {
  return isIP(name.replace(/^\[(.*)\]$/, '$1')) > 0;
}

// The page sends it with each request. Another site cannot without the permission of this server (a CORS preflight).
const PAGE_HEADER = 'x-redlock-dashboard';

// Data and actions are for the page of the dashboard only, even if the application allows other origins by CORS.
// `origins`: where the page is besides the `Host` of the request.
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

// A page cannot change `Origin` and `Host`. It can set every other header that CORS permits.
function isOwn(origin: string, host: string | undefined, origins: readonly string[]): boolean {
  return origins.includes(origin) || (URL.canParse(origin) && new URL(origin).host === host);
}
