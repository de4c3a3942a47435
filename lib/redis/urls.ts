import type { RedisOptions } from 'ioredis';
import { redactUrl } from '../settings/display.js';
import { RedlockConfigError } from '../settings/config.error.js';
import { text } from '../settings/table.js';

const SCHEME = String.raw`(?:[a-z][a-z\d+.-]*://)?`;
const SERVER = String.raw`(?:[\p{L}\p{M}\p{N}._-]+|\[[\da-f:.]+\])(?::\d+)?(?=[,/]|$)`;
const DATABASE = String.raw`(?:/-?\d*(?=,|$))?`;
// The beginning of an address without credentials that contains no secret, even if a character is wrong.
const SHOWN = new RegExp(String.raw`^${SCHEME}(?:\*{3}@)?(?:(?:,\s*${SCHEME})?${SERVER}${DATABASE})*`, 'iu');

export class UrlError extends Error {}

// Not at the commas between the hosts of one URL: there no new scheme and no path follows.
export function addressesIn(list: string): string[] {
  return list
    .split(/,(?=\s*(?:$|,|\/|[a-z][a-z\d+.-]*:\/\/))/i)
    .map((address) => address.trim())
    .filter((address) => address !== '');
}

// For messages. After a wrong separator, a password stands where a path, a host or a port belongs.
export function redactAddress(address: string): string {
  if (isForeign(address) || isFragment(address)) return '***';
  const text = redactUrl(address);
  const [shown = ''] = SHOWN.exec(text) ?? [];
  if (shown === text || isSocketPath(text)) return text;
  return text[shown.length] === '/' ? `${shown}/***` : `${shown}***`;
}

// The words by which other ecosystems name the parts of an address.
const NAMED_PART =
  /(?:^|[\s,;?&{"'])(?:pass(?:word|wd|phrase)?|pwd|auth|user(?:name|id)?|uid|host|server|port|ssl|secret|token)["']?\s*[=:]/i;

// A list of named parts, a command or JSON: any part of it could be a password.
function isForeign(address: string): boolean {
  return (
    !/^[a-z][a-z\d+.-]*:\/\//i.test(address) &&
    !isSocketPath(address) &&
    (NAMED_PART.test(address) || /[\s@={"';]/.test(address))
  );
}

// Neither a URL, nor host and port, nor a path: a list that was split in the middle of a password ends so.
function isFragment(address: string): boolean {
  if (['', 'memory'].includes(address) || /^[a-z][a-z\d+.-]*:\/\//i.test(address)) return false;
  return isSocketPath(address)
    ? /[\s@={"';&,]/.test(address)
    : !address.split(',').every((host) => /^\s*[^\s,:/]+:\d{1,5}(?:\/\d*)?$/.test(host));
}

function isSocketPath(address: string): boolean {
  return address.startsWith('/') && !address.startsWith('//');
}

function refuseUnknown(query: URLSearchParams, known: readonly string[]): void {
  if ([...query.keys()].every((name) => known.includes(name))) {
    const twice = [...new Set(query.keys())].find((key) => query.getAll(key).length > 1);
    if (twice !== undefined) throw new UrlError(`must have the parameter ${twice} only once`);
    return;
  }
  const list = `${known.slice(0, -1).join(', ')} and ${known.at(-1)}`;
  const isLogin = [...query.keys()].some((name) => /^(?:user(?:name)?|pass(?:word)?|pwd|auth)$/i.test(name));
  const advice = isLogin ? 'write user and password as in redis://user:password@host:6379' : 'give options instead';
  throw new UrlError(`must have no parameter but ${list}: ${advice}`);
}

function databaseOf(query: URLSearchParams, path: string, requirement: string): RedisOptions {
  if (path !== '' && query.has('db')) throw new UrlError('must name the database once, in the path or as db');
  const db = query.get('db') ?? path;
  if (!/^\d*$/.test(db)) throw new UrlError(requirement);
  return db === '' ? {} : { db: Number(db) };
}

function familyOf(query: URLSearchParams): RedisOptions {
  const family = query.get('family');
  if (family === null) return {};
  if (!/^[046]$/.test(family)) throw new UrlError('must have 0, 4 or 6 as its family');
  return { family: Number(family) };
}

function credentialsOf({ username, password }: Pick<URL, 'username' | 'password'>): RedisOptions {
  if (username === '' && password === '') return {};
  return { username: decoded(username), password: decoded(password) };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new UrlError('must have a % in user or password written as %25');
  }
}

// IPv6 addresses are without brackets.
export interface NodeAddress {
  readonly host: string;
  readonly port: number;
}

export const DEFAULT_HOST = 'localhost';
export const REDIS_PORT = 6379;
export const SENTINEL_PORT = 26_379;

const HOST = /^(?:[\p{L}\p{M}\p{N}._-]+|[0-9a-f:.]+(?:%[\w.-]+)?)$/iu;
// An IPv6 address is in brackets.
const HOST_AND_PORT = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d+))?$/;

export function checkEndpoint(option: string, host: unknown, port: unknown): NodeAddress {
  const name = text(`${option}.host`, host);
  if (!HOST.test(name)) {
    // The host names the master in every log: a value that is not an address could be a password.
    throw new RedlockConfigError(`${option}.host`, redactAddress(name), 'must be the name or address of a host alone');
  }
  if (typeof port !== 'number' || !Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new RedlockConfigError(`${option}.port`, port, 'must be from 1 to 65535');
  }
  return { host: name, port };
}

export function sentinelsIn({ sentinels }: RedisOptions): readonly NodeAddress[] {
  return (sentinels ?? []).map(({ host = DEFAULT_HOST, port = SENTINEL_PORT }) => ({ host, port }));
}

export function nameOf({ host, port }: NodeAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

export function endpointOf({ host, port }: NodeAddress): string {
  return nameOf({ host: host.toLowerCase(), port });
}

// Checks neither host nor port. `undefined` if the text has another form.
export function splitEndpoint(text: string, defaultPort: number): NodeAddress | undefined {
  const [, address, name, port] = HOST_AND_PORT.exec(text.trim()) ?? [];
  const host = address ?? name;
  return host === undefined ? undefined : { host, port: port === undefined ? defaultPort : Number(port) };
}

// Scheme, user and password, list of hosts, path, parameters, fragment.
const PARTS = /^(rediss?)\+(sentinel|cluster):\/\/(?:([^/?#]*)@)?([^/?#]*)([^?#]*)(?:\?([^#]*))?(#.*)?$/is;

export interface HostListForm {
  readonly scheme: 'sentinel' | 'cluster';
  readonly names: readonly [one: string, all: string];
  readonly defaultPort: number;
  readonly parameters: readonly string[];
  readonly insteadOfFragment: string;
}

interface HostListUrl {
  readonly hosts: readonly NodeAddress[];
  readonly settings: RedisOptions;
  readonly usesTls: boolean;
  // Empty, or with a slash at its beginning.
  readonly path: string;
  readonly query: URLSearchParams;
}

export function hasForm(address: string, { scheme }: HostListForm): boolean {
  return /^([a-z+-]*):\/\//i.exec(address)?.[1]?.toLowerCase().includes(scheme) ?? false;
}

// No URL parser accepts a list of hosts with ports.
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
  const [username = '', ...password] = login.split(':');
  return credentialsOf({ username, password: password.join(':') });
}

export const SENTINEL_FORM: HostListForm = {
  scheme: 'sentinel',
  names: ['a sentinel', 'sentinels'],
  defaultPort: SENTINEL_PORT,
  parameters: ['db', 'family', 'sentinelUsername', 'sentinelPassword'],
  insteadOfFragment: 'the name of the master is the path, a # in a password is written %23',
};

// Every log shows the name. With one of these characters, a part of it could be a password in the wrong place.
const NAME = /^[^?&;,=:@#/]+$/;

function settingsOfSentinelUrl(address: string): RedisOptions {
  const { hosts, settings, usesTls, path, query } = splitHostListUrl(address, SENTINEL_FORM);
  const { name, db } = pathOf(path);
  if (hosts.some(({ port }) => port < 1 || port > 65_535)) throw new UrlError('must have ports from 1 to 65535');
  return {
    sentinels: [...hosts],
    name,
    ...settings,
    ...databaseOf(query, db, 'must have the number of a database after the name of the master, or none'),
    ...Object.fromEntries([...query].filter(([parameter]) => parameter.startsWith('sentinel'))),
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

// Everything else is given as options, where it has a type.
const PARAMETERS = ['db', 'family'] as const;

const NOT_A_LIST_OF_PARTS =
  'must be a URL, not the connection string of another client or a list of named parts: write ' +
  'redis://user:password@host:6379/0 (rediss:// with TLS), where a special character in the password is written %XX';

const ONE_ADDRESS = "must be one address: split a list of them at its commas, .split(',')";

const SEPARATED = "must be one address: a list has commas between its addresses, and is split there, .split(',')";

const QUOTED = 'must be without quotes: JSON keeps them, and so does Docker with an env file';

const NEEDS_SCHEME =
  'must begin with redis:// or rediss://, as in redis://localhost:6379, or be the path of a unix socket';
const NEEDS_PORT = 'must have a port from 1 to 65535';

// Returns the violated requirement as a string if that fails.
export function settingsOfUrl(text: string): RedisOptions | string {
  try {
    if (isSocketPath(text)) return settingsOfPath(text);
    return hasForm(text, SENTINEL_FORM) ? settingsOfSentinelUrl(text) : settingsOfServerUrl(text);
  } catch (error) {
    if (error instanceof UrlError) return error.message;
    throw error;
  }
}

// As an environment variable has it, and not the hosts of one URL.
export function isListOfAddresses(text: string): boolean {
  return !/^rediss?\+/i.test(text) && settingsOfUrl(text) === ONE_ADDRESS;
}

function settingsOfServerUrl(text: string): RedisOptions {
  const url = parsed(text);
  if (url.hostname.includes(',') || (url.hostname === '' && text.includes(','))) throw new UrlError(ONE_ADDRESS);
  if (!/^rediss?:\/\//i.test(text)) throw new UrlError(NEEDS_SCHEME);
  // For an unknown scheme, the parser accepts nearly everything.
  if (url.hostname === '') throw new UrlError('must name a host');
  if (url.port === '0') throw new UrlError(NEEDS_PORT);
  if (url.hash !== '') throw new UrlError('must have no fragment: a # in a password is written %23');
  return {
    ...parametersOf(url.searchParams, url.pathname.slice(1)),
    host: decoded(url.hostname).replace(/^\[|\]$/g, ''),
    port: url.port === '' ? REDIS_PORT : Number(url.port),
    ...credentialsOf(url),
    ...(url.protocol === 'rediss:' && { tls: {} }),
  };
}

function parsed(text: string): URL {
  if (text === '') {
    throw new UrlError('must be a redis:// or rediss:// URL and not empty: an environment variable may be missing');
  }
  if (text === 'memory') {
    throw new UrlError("must be an address: 'memory' stands instead of the whole list, { masters: 'memory' }");
  }
  if (/^\[?["'`]|["'`]\]?$/.test(text)) throw new UrlError(QUOTED);
  if (/[;|\s]\s*rediss?:\/\//i.test(text)) throw new UrlError(SEPARATED);
  if (isForeign(text) || /[,;\s]\s*(?:password|pwd|auth|user)\s*=/i.test(text)) throw new UrlError(NOT_A_LIST_OF_PARTS);
  try {
    return new URL(text);
  } catch {
    if (text.includes(',')) throw new UrlError(ONE_ADDRESS);
    if (!text.includes('://')) throw new UrlError(NEEDS_SCHEME);
    const [, port] = /:\/\/(?:[^/?#]*@)?[^/?#@:]+:(\d+)(?:[/?#]|$)/.exec(text) ?? [];
    if (Number(port) > 65_535) throw new UrlError(NEEDS_PORT);
    throw new UrlError(
      'must be a redis:// or rediss:// URL that can be parsed, or the path of a unix socket; ' +
        'in user and password / is written %2F, ? %3F, # %23 and @ %40',
    );
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
  const db = databaseOf(
    query,
    path,
    'must have the number of a database as its path, as in redis://localhost:6379/0, or no path',
  );
  return { ...db, ...familyOf(query) };
}

// Recognizes plain objects of any realm; instances of classes that are not built in count as such.
export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return Object.prototype.toString.call(value) === '[object Object]';
}
