import { Redis, type RedisOptions } from 'ioredis';
import { RedlockConfigError } from '../core/errors.js';
import { resolveFlag } from '../core/settings/settings.js';
import { OWN_SETTINGS } from './own-settings.js';
import type { RedisClient, RedisClientOptions, RedisClientSource } from './redis-client.interface.js';
import type { RedisMasterContext } from './redis-master-context.interface.js';
import { RedisMaster } from './redis-master.js';
import { settingsOfUrl } from './redis-url.js';
import { redactAddress } from './url-parts.js';

/**
 * The address of a master: a `redis://` or `rediss://` URL, the path of a unix socket, a `redis+sentinel://` or
 * `rediss+sentinel://` URL with the sentinels that watch it and its name, the options of an ioredis client, or such a
 * client (of ioredis 5 or 6), whose settings are copied.
 */
export type RedisMasterSource = string | (RedisOptions & DurableOption) | RedisClientSource;

/** What can be declared for one master in addition to its connection settings. */
export interface DurableOption {
  /**
   * Declares that this master keeps each acknowledged write across restarts and failovers.
   * @default the module's `durable`
   */
  readonly durable?: boolean;
}

const DEFAULT_HOST = 'localhost';
const SENTINEL_PORT = 26_379;
/** Host names, and IPv4 and IPv6 addresses, optionally with a zone. */
const HOST = /^(?:[\p{L}\p{M}\p{N}._-]+|[0-9a-f:.]+(?:%[\w.-]+)?)$/iu;
const PRINTABLE = /^\P{C}+$/u;

const REQUIREMENT =
  'must be a redis:// or rediss:// URL, the path of a unix socket, ioredis options or an ioredis client';

/**
 * Creates masters on Redis servers. They are not connected yet.
 *
 * @param option name of the list in error messages
 * @throws {RedlockConfigError} for the first source that is invalid, or that names the same server as another
 */
export function redisMasters(
  option: string,
  sources: readonly RedisMasterSource[],
  context: RedisMasterContext,
): RedisMaster[] {
  const masters = sources.map((source, index) => redisMaster(`${option}[${index}]`, source, context));
  refuseTwins(option, masters);
  return masters;
}

/** @throws {RedlockConfigError} for the first master that has the name, and so the address, of another */
export function refuseTwins(option: string, masters: readonly { readonly name: string }[]): void {
  masters.forEach(({ name }, index) => {
    const first = masters.findIndex((master) => master.name === name);
    if (first === index) return;
    const requirement = `must be another server than ${option}[${first}]: one server has one vote`;
    throw new RedlockConfigError(`${option}[${index}]`, name, requirement);
  });
}

/**
 * Creates a master on a Redis server. It is not connected yet. Two masters with one name are the same server.
 *
 * @param option name of the source in error messages
 * @throws {RedlockConfigError} if the source is invalid
 */
export function redisMaster(option: string, source: RedisMasterSource, context: RedisMasterContext): RedisMaster {
  const { name, client } = redisClient(option, source);
  client.options.connectionName ??= `nestjs-redlock:${context.settings.instance}`;
  return new RedisMaster(name, client, context, durableOf(option, source) ?? context.settings.durable);
}

function durableOf(option: string, source: RedisMasterSource): boolean | undefined {
  const durable: unknown = typeof source === 'object' && 'durable' in source ? source.durable : undefined;
  return durable === undefined ? undefined : resolveFlag(`${option}.durable`, durable);
}

/** A client that is not connected yet, and the address of its server. */
export interface NamedClient {
  readonly name: string;
  readonly client: RedisClient;
}

/** @throws {RedlockConfigError} if the source is invalid */
export function redisClient(option: string, source: RedisMasterSource): NamedClient {
  const client = clientFrom(option, source);
  return { name: addressOf(client.options), client };
}

/** Any error while a source is read means that the source is invalid. */
function clientFrom(option: string, source: unknown): RedisClient {
  try {
    const client = copyOf(option, source);
    checkAddress(option, client.options);
    return client;
  } catch (error) {
    throw error instanceof RedlockConfigError ? error : new RedlockConfigError(option, source, REQUIREMENT);
  }
}

function copyOf(option: string, source: unknown): RedisClient {
  if (typeof source === 'string') return clientFromUrl(option, source);
  if (typeof source !== 'object' || source === null) throw new RedlockConfigError(option, source, REQUIREMENT);
  if ('isCluster' in source && source.isCluster === true) {
    const requirement = 'must be one independent server: the nodes of a Redis Cluster are not independent masters';
    throw new RedlockConfigError(option, source, requirement);
  }
  if (isClient(source)) return source.duplicate(OWN_SETTINGS) as RedisClient;
  if (!isPlainObject(source)) throw new RedlockConfigError(option, source, REQUIREMENT);
  return clientFromOptions(option, source);
}

function clientFromUrl(option: string, url: string): RedisClient {
  const settings = settingsOfUrl(url);
  if (typeof settings === 'string') throw new RedlockConfigError(option, redactAddress(url), settings);
  return new Redis({ ...settings, ...OWN_SETTINGS });
}

function clientFromOptions(option: string, options: RedisOptions): RedisClient {
  const names: readonly (keyof RedisOptions)[] = ['host', 'port', 'path', 'sentinels'];
  if (!names.some((name) => options[name] !== undefined)) {
    // Otherwise a misspelled option would select a server on this machine.
    throw new RedlockConfigError(option, options, `must say where the server is: ${names.join(', ')}`);
  }
  // Before the client reads them.
  if (options.sentinels) checkSentinels(option, options.sentinels, options.name);
  const { durable: _, ...settings } = options as RedisOptions & DurableOption;
  return new Redis({ ...settings, ...OWN_SETTINGS });
}

function checkAddress(option: string, { host, port, path, sentinels, name }: RedisClientOptions): void {
  if (sentinels) checkSentinels(option, sentinels, name);
  else if (path) checkPath(`${option}.path`, path);
  else checkEndpoint(option, host, port);
}

function checkSentinels(option: string, sentinels: unknown, name: unknown): void {
  if (!Array.isArray(sentinels) || sentinels.length === 0) {
    throw new RedlockConfigError(`${option}.sentinels`, sentinels, 'must be a list of at least one');
  }
  Array.from(sentinels, (sentinel: unknown, i) => {
    const where = `${option}.sentinels[${i}]`;
    if (typeof sentinel !== 'object' || sentinel === null) {
      throw new RedlockConfigError(where, sentinel, 'must say where the sentinel is: host, port');
    }
    const { host = DEFAULT_HOST, port = SENTINEL_PORT } = sentinel as { host?: unknown; port?: unknown };
    checkEndpoint(where, host, port);
  });
  if (name != null && (typeof name !== 'string' || !PRINTABLE.test(name))) {
    throw new RedlockConfigError(`${option}.name`, name, 'must be a printable text');
  }
}

function checkPath(option: string, path: unknown): void {
  if (typeof path !== 'string') throw new RedlockConfigError(option, path, 'must be a string');
  if (path.includes('://') || !PRINTABLE.test(path)) {
    throw new RedlockConfigError(option, path, 'must be the path of a unix socket');
  }
}

function checkEndpoint(option: string, host: unknown, port: unknown): void {
  if (typeof host !== 'string' || host === '') {
    throw new RedlockConfigError(`${option}.host`, host, 'must be a non-empty string');
  }
  if (!HOST.test(host)) {
    // The host names the master in every log: a value that is not an address could be a password.
    throw new RedlockConfigError(`${option}.host`, redactAddress(host), 'must be the name or address of a host alone');
  }
  if (typeof port !== 'number' || !Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new RedlockConfigError(`${option}.port`, port, 'must be from 1 to 65535');
  }
}

/** The address of a server. It does not contain the number of the database, because all databases are lost together. */
function addressOf({ host, port, path, sentinels, name }: RedisClientOptions): string {
  if (sentinels) return `${name ?? 'master'} of sentinels ${sentinels.map(endpointOf).sort().join(', ')}`;
  return path ? path : endpointOf({ host, port });
}

function endpointOf({
  host = DEFAULT_HOST,
  port = SENTINEL_PORT,
}: {
  host?: string | undefined;
  port?: number | undefined;
}): string {
  const lowerCased = host.toLowerCase();
  return `${lowerCased.includes(':') ? `[${lowerCased}]` : lowerCased}:${port}`;
}

function isClient(source: object): source is RedisClientSource {
  return 'duplicate' in source && typeof source.duplicate === 'function' && 'isCluster' in source && 'status' in source;
}

/** Recognizes plain objects of any realm. */
function isPlainObject(value: object): boolean {
  return Object.prototype.toString.call(value) === '[object Object]' && !('duplicate' in value);
}
