import type { RedisOptions } from 'ioredis';
import { type NodeAddress, splitEndpoint } from './endpoint.js';
import { credentialsOf, decoded, familyOf, refuseUnknown, UrlError } from './url-parts.js';

/** Scheme, user and password, list of hosts, path, parameters, fragment. */
const PARTS = /^(rediss?)\+(sentinel|cluster):\/\/(?:([^/?#]*)@)?([^/?#]*)([^?#]*)(?:\?([^#]*))?(#.*)?$/is;

/** A form of URL that lists several hosts, and the words of its error messages. */
export interface HostListForm {
  readonly scheme: 'sentinel' | 'cluster';
  /** One of the hosts, and all of them. */
  readonly names: readonly [one: string, all: string];
  readonly defaultPort: number;
  /** Names of the parameters. */
  readonly parameters: readonly string[];
  /** What to write in place of a fragment. */
  readonly insteadOfFragment: string;
}

/** The parts of such a URL. */
export interface HostListUrl {
  readonly hosts: readonly NodeAddress[];
  /** User, password and family. */
  readonly settings: RedisOptions;
  readonly usesTls: boolean;
  /** Empty, or with a slash at its beginning. */
  readonly path: string;
  readonly query: URLSearchParams;
}

/** Whether the address has a scheme of this form, that of this library or of another one. */
export function hasForm(address: string, { scheme }: HostListForm): boolean {
  return /^([a-z+-]*):\/\//i.exec(address)?.[1]?.toLowerCase().includes(scheme) ?? false;
}

/**
 * Splits a URL that lists several hosts. No URL parser accepts a list of hosts with ports.
 *
 * @throws {UrlError}
 */
export function splitHostListUrl(address: string, form: HostListForm): HostListUrl {
  const { scheme, names, parameters, insteadOfFragment } = form;
  const [one, all] = names;
  if (/,\s*[a-z][a-z+-]*:\/\//i.test(address)) {
    throw new UrlError(`must be one address: give several as a list, and the scheme of ${one} only once`);
  }
  const [, redis, kind, login = '', hosts = '', path = '', text, fragment] = PARTS.exec(address) ?? [];
  if (redis === undefined || kind?.toLowerCase() !== scheme) {
    throw new UrlError(`must begin with redis+${scheme}:// or rediss+${scheme}:// if it names ${all}`);
  }
  if (fragment !== undefined) throw new UrlError(`must have no fragment: ${insteadOfFragment}`);
  const query = new URLSearchParams(text);
  refuseUnknown(query, parameters);
  return {
    hosts: hosts.split(',').map((host) => hostOf(host, form)),
    settings: { ...loginOf(login), ...familyOf(query) },
    usesTls: redis.toLowerCase() === 'rediss',
    path,
    query,
  };
}

function hostOf(text: string, { names: [, all], defaultPort }: HostListForm): NodeAddress {
  const address = splitEndpoint(text, defaultPort);
  if (address === undefined) {
    // The text could be a part of a password.
    throw new UrlError(
      `must list ${all} as host:port, separated by commas; ` +
        'in user and password / is written %2F, ? %3F, # %23 and @ %40',
    );
  }
  return { ...address, host: decoded(address.host) };
}

function loginOf(login: string): RedisOptions {
  const colon = login.indexOf(':');
  if (colon === -1) return credentialsOf({ username: login, password: '' });
  return credentialsOf({ username: login.slice(0, colon), password: login.slice(colon + 1) });
}
