import type { RedisOptions } from 'ioredis';

/** Thrown with the violated requirement. */
export class UrlError extends Error {}

/**
 * Splits a list of addresses at its commas, except for those between the sentinels of one URL: there no new scheme and
 * no path follows.
 */
export function addressesIn(list: string): string[] {
  return list
    .split(/,(?=\s*(?:$|,|\/|[a-z][a-z\d+.-]*:\/\/))/i)
    .map((address) => address.trim())
    .filter((address) => address !== '');
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
