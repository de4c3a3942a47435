import type { RedisOptions } from 'ioredis';

/** Parameters that a URL may have. Everything else is given as options, where it has a type. */
const PARAMETERS = ['db', 'family'] as const;

const ONE_ADDRESS = "must be one address: split a list of them at its commas, .split(',')";

/**
 * Parses a URL or the path of a socket into connection settings. Returns the violated requirement as a string if that
 * fails.
 */
export function settingsOfUrl(text: string): RedisOptions | string {
  if (text.startsWith('/') && !text.startsWith('//')) return settingsOfPath(text);
  if (text === '') return 'must be a redis:// or rediss:// URL and not empty: an environment variable may be missing';
  if (text === 'memory') return "must be an address: 'memory' stands in place of the whole list, { masters: 'memory' }";
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    if (text.includes(',')) return ONE_ADDRESS;
    return 'must be a redis:// or rediss:// URL that can be parsed, or the path of a unix socket';
  }
  if (url.hostname.includes(',') || (url.hostname === '' && text.includes(','))) return ONE_ADDRESS;
  if (url.protocol !== 'redis:' && url.protocol !== 'rediss:') {
    return 'must begin with redis:// or rediss://, or be the path of a unix socket';
  }
  // For an unknown scheme, the parser accepts nearly everything.
  if (url.hostname === '') return 'must name a host';
  if (url.port === '0') return 'must have a port from 1 to 65535';
  if (url.hash !== '') return 'must have no fragment: a # in a password is written %23';
  return withParameters(url.searchParams, url.pathname.slice(1), () => ({
    host: decodeURIComponent(url.hostname).replace(/^\[|\]$/g, ''),
    port: url.port === '' ? 6379 : Number(url.port),
    ...credentialsOf(url),
    ...(url.protocol === 'rediss:' && { tls: {} }),
  }));
}

function settingsOfPath(text: string): RedisOptions | string {
  const [path = '', query] = text.split('?', 2);
  return withParameters(new URLSearchParams(query), '', () => ({ path }));
}

function withParameters(query: URLSearchParams, path: string, rest: () => RedisOptions): RedisOptions | string {
  const unknown = [...query.keys()].find((name) => !PARAMETERS.some((known) => known === name));
  if (unknown !== undefined) return `must have no parameter but ${PARAMETERS.join(' and ')}: give options instead`;
  const db = query.get('db') ?? path;
  if (!/^\d*$/.test(db)) return 'must have the number of a database as its path, or no path';
  const family = query.get('family');
  if (family !== null && !/^[046]$/.test(family)) return 'must have 0, 4 or 6 as its family';
  try {
    return { ...rest(), ...(db !== '' && { db: Number(db) }), ...(family !== null && { family: Number(family) }) };
  } catch {
    return 'must have a % in user or password written as %25';
  }
}

function credentialsOf({ username, password }: URL): RedisOptions {
  if (username === '' && password === '') return {};
  return { username: decodeURIComponent(username), password: decodeURIComponent(password) };
}
