import type { RedisOptions } from 'ioredis';
import { hasForm, type HostListForm, splitHostListUrl } from './host-list-url.js';
import { databaseOf, decoded, UrlError } from './url-parts.js';

const FORM: HostListForm = {
  scheme: 'sentinel',
  names: ['a sentinel', 'sentinels'],
  defaultPort: 26_379,
  parameters: ['db', 'family', 'sentinelUsername', 'sentinelPassword'],
  insteadOfFragment: 'the name of the master is the path, a # in a password is written %23',
};

/** Every log shows the name. With one of these characters, a part of it could be a password in the wrong place. */
const NAME = /^[^?&;,=:@#/]+$/;

/** Whether the address names sentinels, with the scheme of this library or of another one. */
export function namesSentinels(address: string): boolean {
  return hasForm(address, FORM);
}

/**
 * Parses the URL of a master that sentinels watch.
 *
 * @throws {UrlError}
 */
export function settingsOfSentinelUrl(address: string): RedisOptions {
  const { hosts, settings, usesTls, path, query } = splitHostListUrl(address, FORM);
  const { name, db } = pathOf(path);
  if (hosts.some(({ port }) => port < 1 || port > 65_535)) throw new UrlError('must have ports from 1 to 65535');
  if (db !== '' && query.has('db')) throw new UrlError('must name the database once, after the name or as db');
  const twice = [...new Set(query.keys())].find((key) => query.getAll(key).length > 1);
  if (twice !== undefined) throw new UrlError(`must have the parameter ${twice} only once`);
  return {
    sentinels: [...hosts],
    name,
    ...settings,
    ...databaseOf(query, db, 'must have the number of a database after the name of the master, or none'),
    ...sentinelLoginOf(query),
    ...(usesTls && { tls: {}, enableTLSForSentinelMode: true, sentinelTLS: {} }),
  };
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

function sentinelLoginOf(query: URLSearchParams): RedisOptions {
  const [sentinelUsername, sentinelPassword] = [query.get('sentinelUsername'), query.get('sentinelPassword')];
  return {
    ...(sentinelUsername !== null && { sentinelUsername }),
    ...(sentinelPassword !== null && { sentinelPassword }),
  };
}
