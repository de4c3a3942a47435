import type { RedisOptions } from 'ioredis';
import { namesSentinels, settingsOfSentinelUrl } from './sentinel-url.js';
import {
  credentialsOf,
  databaseOf,
  decoded,
  familyOf,
  isForeign,
  isSocketPath,
  refuseUnknown,
  UrlError,
} from './url-parts.js';

/** Parameters that a URL may have. Everything else is given as options, where it has a type. */
const PARAMETERS = ['db', 'family'] as const;

const NOT_A_LIST_OF_PARTS =
  'must be a URL, not the connection string of another client or a list of named parts: write ' +
  'redis://user:password@host:6379/0 (rediss:// with TLS), where a special character in the password is written %XX';

const ONE_ADDRESS = "must be one address: split a list of them at its commas, .split(',')";

/**
 * Parses a URL or the path of a socket into connection settings. Returns the violated requirement as a string if that
 * fails.
 */
export function settingsOfUrl(text: string): RedisOptions | string {
  try {
    if (isSocketPath(text)) return settingsOfPath(text);
    return namesSentinels(text) ? settingsOfSentinelUrl(text) : settingsOfServerUrl(text);
  } catch (error) {
    if (error instanceof UrlError) return error.message;
    throw error;
  }
}

function settingsOfServerUrl(text: string): RedisOptions {
  const url = parsed(text);
  if (url.hostname.includes(',') || (url.hostname === '' && text.includes(','))) throw new UrlError(ONE_ADDRESS);
  if (url.protocol !== 'redis:' && url.protocol !== 'rediss:') {
    throw new UrlError('must begin with redis:// or rediss://, or be the path of a unix socket');
  }
  // For an unknown scheme, the parser accepts nearly everything.
  if (url.hostname === '') throw new UrlError('must name a host');
  if (url.port === '0') throw new UrlError('must have a port from 1 to 65535');
  if (url.hash !== '') throw new UrlError('must have no fragment: a # in a password is written %23');
  return {
    ...parametersOf(url.searchParams, url.pathname.slice(1)),
    host: decoded(url.hostname).replace(/^\[|\]$/g, ''),
    port: url.port === '' ? 6379 : Number(url.port),
    ...credentialsOf(url),
    ...(url.protocol === 'rediss:' && { tls: {} }),
  };
}

function parsed(text: string): URL {
  if (text === '') {
    throw new UrlError('must be a redis:// or rediss:// URL and not empty: an environment variable may be missing');
  }
  if (text === 'memory') {
    throw new UrlError("must be an address: 'memory' stands in place of the whole list, { masters: 'memory' }");
  }
  if (isForeign(text) || /[,;\s]\s*(?:password|pwd|auth|user)\s*=/i.test(text)) throw new UrlError(NOT_A_LIST_OF_PARTS);
  try {
    return new URL(text);
  } catch {
    if (text.includes(',')) throw new UrlError(ONE_ADDRESS);
    throw new UrlError('must be a redis:// or rediss:// URL that can be parsed, or the path of a unix socket');
  }
}

function settingsOfPath(text: string): RedisOptions {
  const [path = '', ...query] = text.split('?');
  // The path is shown in every log.
  if (path.includes('=')) throw new UrlError('must have its parameters after a ?: give a path with a = as options');
  return { ...parametersOf(new URLSearchParams(query.join('?')), ''), path };
}

function parametersOf(query: URLSearchParams, path: string): RedisOptions {
  refuseUnknown(query, PARAMETERS);
  const db = databaseOf(query, path, 'must have the number of a database as its path, or no path');
  return { ...db, ...familyOf(query) };
}
