import type { RedisOptions } from 'ioredis';
import { redactUrl } from '../core/display.js';

const SCHEME = String.raw`(?:[a-z][a-z\d+.-]*://)?`;
const SERVER = String.raw`(?:[\p{L}\p{M}\p{N}._-]+|\[[\da-f:.]+\])(?::\d+)?(?=[,/]|$)`;
const DATABASE = String.raw`(?:/\d*(?=,|$))?`;
/** The beginning of an address without credentials that contains no secret, even if a character is wrong. */
const SHOWN = new RegExp(String.raw`^${SCHEME}(?:\*{3}@)?(?:(?:,\s*${SCHEME})?${SERVER}${DATABASE})*`, 'iu');

/** Thrown with the violated requirement. */
export class UrlError extends Error {}

/**
 * Splits a list of addresses at its commas, except for those between the hosts of one URL: there no new scheme and no
 * path follows.
 */
export function addressesIn(list: string): string[] {
  return list
    .split(/,(?=\s*(?:$|,|\/|[a-z][a-z\d+.-]*:\/\/))/i)
    .map((address) => address.trim())
    .filter((address) => address !== '');
}

/**
 * Formats the address of a master for a message. After a wrong separator, a password is in the place of a path, a host or
 * a port.
 */
export function redactAddress(address: string): string {
  if (isForeign(address) || isFragment(address)) return '***';
  const text = redactUrl(address);
  const [shown = ''] = SHOWN.exec(text) ?? [];
  if (shown === text || isSocketPath(text)) return text;
  return text[shown.length] === '/' ? `${shown}/***` : `${shown}***`;
}

/** The words by which other ecosystems name the parts of an address. */
const NAMED_PART =
  /(?:^|[\s,;?&{"'])(?:pass(?:word|wd|phrase)?|pwd|auth|user(?:name|id)?|uid|host|server|port|ssl|secret|token)["']?\s*[=:]/i;

/** Whether an address that is no URL is a list of named parts, a command or JSON: any part of it could be a password. */
export function isForeign(address: string): boolean {
  return (
    !/^[a-z][a-z\d+.-]*:\/\//i.test(address) &&
    !isSocketPath(address) &&
    (NAMED_PART.test(address) || /[\s@={"';]/.test(address))
  );
}

/** Whether it is neither a URL, nor host and port, nor a path: a list that was split in the middle of a password ends so. */
function isFragment(address: string): boolean {
  if (['', 'memory'].includes(address) || /^[a-z][a-z\d+.-]*:\/\//i.test(address)) return false;
  return isSocketPath(address)
    ? /[\s@={"';&,]/.test(address)
    : !address.split(',').every((host) => /^\s*[^\s,:/]+:\d{1,5}(?:\/\d*)?$/.test(host));
}

/** Whether the address is the path of a unix socket. */
export function isSocketPath(address: string): boolean {
  return address.startsWith('/') && !address.startsWith('//');
}

/** @throws {UrlError} for a parameter that is not among the known ones */
export function refuseUnknown(query: URLSearchParams, known: readonly string[]): void {
  if ([...query.keys()].every((name) => known.includes(name))) return;
  const list = `${known.slice(0, -1).join(', ')} and ${known.at(-1)}`;
  throw new UrlError(`must have no parameter but ${list}: give options instead`);
}

/** @throws {UrlError} */
export function databaseOf(query: URLSearchParams, path: string, requirement: string): RedisOptions {
  const db = query.get('db') ?? path;
  if (!/^\d*$/.test(db)) throw new UrlError(requirement);
  return db === '' ? {} : { db: Number(db) };
}

/** @throws {UrlError} */
export function familyOf(query: URLSearchParams): RedisOptions {
  const family = query.get('family');
  if (family === null) return {};
  if (!/^[046]$/.test(family)) throw new UrlError('must have 0, 4 or 6 as its family');
  return { family: Number(family) };
}

/** @throws {UrlError} */
export function credentialsOf({ username, password }: Pick<URL, 'username' | 'password'>): RedisOptions {
  if (username === '' && password === '') return {};
  return { username: decoded(username), password: decoded(password) };
}

/** @throws {UrlError} */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new UrlError('must have a % in user or password written as %25');
  }
}
