import type { RedisOptions } from 'ioredis';
import { credentialsOf, databaseOf, decoded, familyOf, refuseUnknown, UrlError } from './url-parts.js';

const PARAMETERS = ['db', 'family', 'sentinelUsername', 'sentinelPassword'] as const;
const PORT = 26_379;

/** Scheme, user and password, list of sentinels, path, parameters, fragment. */
const PARTS = /^(rediss?)\+sentinel:\/\/(?:([^/?#]*)@)?([^/?#]*)([^?#]*)(?:\?([^#]*))?(#.*)?$/is;
/** A name, an IPv4 address, or an IPv6 address in brackets, and a port. */
const SENTINEL = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d+))?$/;
/** Every log shows the name. With one of these characters, a part of it could be a password in the wrong place. */
const NAME = /^[^?&;,=:@#/]+$/;

/** Whether the address names sentinels, with the scheme of this library or of another one. */
export function namesSentinels(address: string): boolean {
  return /^[a-z+-]*sentinel[a-z+-]*:\/\//i.test(address);
}

/**
 * Parses the URL of a master that sentinels watch. No URL parser accepts a list of hosts with ports.
 *
 * @throws {UrlError}
 */
export function settingsOfSentinelUrl(address: string): RedisOptions {
  if (/,\s*[a-z][a-z+-]*:\/\//i.test(address)) {
    throw new UrlError('must be one address: give several as a list, and the scheme of a sentinel only once');
  }
  const [, scheme, login = '', hosts = '', path = '', parameters, fragment] = PARTS.exec(address) ?? [];
  if (scheme === undefined) {
    throw new UrlError('must begin with redis+sentinel:// or rediss+sentinel:// if it names sentinels');
  }
  if (fragment !== undefined) {
    throw new UrlError('must have no fragment: the name of the master is the path, a # in a password is written %23');
  }
  const query = new URLSearchParams(parameters);
  refuseUnknown(query, PARAMETERS);
  const sentinels = hosts.split(',').map(sentinelOf);
  const { name, db } = pathOf(path);
  const tls = scheme.toLowerCase() === 'rediss';
  return {
    sentinels,
    name,
    ...loginOf(login),
    ...databaseOf(query, db, 'must have the number of a database after the name of the master, or none'),
    ...familyOf(query),
    ...sentinelLoginOf(query),
    ...(tls && { tls: {}, enableTLSForSentinelMode: true, sentinelTLS: {} }),
  };
}

function sentinelOf(text: string): { host: string; port: number } {
  const [, address, name, port] = SENTINEL.exec(text.trim()) ?? [];
  const host = address ?? name;
  if (host === undefined) {
    // The text could be a part of a password.
    throw new UrlError(
      'must list sentinels as host:port, separated by commas; ' +
        'in user and password / is written %2F, ? %3F, # %23 and @ %40',
    );
  }
  return { host: decoded(host), port: port === undefined ? PORT : Number(port) };
}

function pathOf(path: string): { name: string; db: string } {
  const [encoded = '', db = '', ...more] = path.slice(1).split('/');
  if (encoded === '' || encoded.includes('@') || more.length > 0) {
    throw new UrlError(
      'must end with the name of the master that the sentinels watch, as in ' +
        'redis+sentinel://host:26379,host:26379/mymaster: it is one address, not to be split at its commas',
    );
  }
  const name = decoded(encoded);
  if (!NAME.test(name)) {
    throw new UrlError(
      'must have its parameters after a ?, and none of ? & ; , = : @ # / in the name of the master: ' +
        'give a name that has one of them as options',
    );
  }
  return { name, db };
}

function loginOf(login: string): RedisOptions {
  const colon = login.indexOf(':');
  if (colon === -1) return credentialsOf({ username: login, password: '' });
  return credentialsOf({ username: login.slice(0, colon), password: login.slice(colon + 1) });
}

function sentinelLoginOf(query: URLSearchParams): RedisOptions {
  const [sentinelUsername, sentinelPassword] = [query.get('sentinelUsername'), query.get('sentinelPassword')];
  return {
    ...(sentinelUsername !== null && { sentinelUsername }),
    ...(sentinelPassword !== null && { sentinelPassword }),
  };
}
