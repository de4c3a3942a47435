import { Redis, type RedisOptions } from 'ioredis';
import { RedlockConfigError } from '../core/errors.js';
import type { Master } from '../core/master.interface.js';
import type { DurableOption } from './recognition.js';
import { flag, list, optional } from '../core/settings/table.js';
import {
  checkEndpoint,
  DEFAULT_HOST,
  endpointOf,
  isPlainObject,
  redactAddress,
  REDIS_PORT,
  SENTINEL_PORT,
  sentinelsIn,
  settingsOfUrl,
} from './urls.js';
import { OWN_SETTINGS } from './connection.js';
import {
  isClient,
  type RedisClient,
  type RedisClientSource,
  type RedisMasterContext,
} from './redis-client.interface.js';
import { ClusterTwins } from './cluster/cluster-map.js';
import { ClusterMaster } from './cluster/cluster-master.js';
import {
  clusterSettings,
  isClusterSource,
  type RedisClusterOptions,
  type RedisClusterSource,
} from './cluster/cluster-source.js';
import { RedisMaster } from './redis-master.js';
import { sentinelGroup } from './sentinel/sentinel-group.js';

/**
 * The address of a master: a `redis://` or `rediss://` URL, the path of a unix socket, a `redis+sentinel://` or
 * `rediss+sentinel://` URL with the sentinels that watch it and its name, a `redis+cluster://` or `rediss+cluster://` URL
 * with nodes of a cluster, the options of an ioredis client, the nodes of a cluster with such options, or a client or a
 * `Cluster` (of ioredis 5 or 6), whose settings are copied. A cluster is one master.
 */
export type RedisMasterSource =
  string | (RedisOptions & DurableOption) | RedisClusterOptions | RedisClientSource | RedisClusterSource;

export type ServerMaster = RedisMaster | ClusterMaster;

export function isServerMaster(master: Master): master is ServerMaster {
  return master instanceof RedisMaster || master instanceof ClusterMaster;
}

const durable = optional(flag);
const PRINTABLE = /^\P{C}+$/u;

const REQUIREMENT =
  'must be a redis:// or rediss:// URL, the path of a unix socket, ioredis options or an ioredis client';

export function redisMasters(
  option: string,
  sources: readonly RedisMasterSource[],
  context: RedisMasterContext,
): ServerMaster[] {
  const clusters = context.clusters ?? new ClusterTwins();
  const masters = sources.map((source, index) => masterFrom(`${option}[${index}]`, source, { ...context, clusters }));
  refuseTwins(option, masters);
  return masters;
}

// One server has one vote, and the name is its address.
// Protocol 8.10
export function refuseTwins(option: string, masters: readonly { readonly name: string }[]): void {
  masters.forEach(({ name }, index) => {
    const first = masters.findIndex((master) => master.name === name);
    if (first === index) return;
    const requirement = `must be another server than ${option}[${first}]: one server has one vote`;
    throw new RedlockConfigError(`${option}[${index}]`, name, requirement);
  });
}

export function masterFrom(option: string, given: RedisMasterSource, context: RedisMasterContext): ServerMaster {
  // A list in an environment variable may have spaces behind its commas.
  const source = typeof given === 'string' ? given.trim() : given;
  return isCluster(option, source)
    ? new ClusterMaster(clusterSettings(option, source), context)
    : redisMaster(option, source, context);
}

function isCluster(option: string, source: unknown): boolean {
  try {
    return isClusterSource(source);
  } catch {
    throw new RedlockConfigError(option, source, REQUIREMENT);
  }
}

// Two masters with one name are the same server.
export function redisMaster(option: string, source: RedisMasterSource, context: RedisMasterContext): RedisMaster {
  const { name, client } = redisClient(option, source);
  client.options.connectionName ??= `nestjs-redlock:${context.settings.instance}`;
  const isDurable = durableOf(option, source) ?? context.settings.durable;
  if (!client.options.sentinels) return new RedisMaster(name, client, context, isDurable);
  const isStrict = context.guard !== undefined;
  const group = sentinelGroup(option, client.options, { clock: context.clock, isStrict });
  const follower = client.duplicate({ Connector: group.connections.connector });
  return new RedisMaster(name, follower, context, isDurable, group);
}

function durableOf(option: string, source: RedisMasterSource): boolean | undefined {
  return durable(`${option}.durable`, typeof source === 'object' && 'durable' in source ? source.durable : undefined);
}

// The client is not connected yet; the name is the address of its server.
export interface NamedClient {
  readonly name: string;
  readonly client: RedisClient;
}

export function redisClient(option: string, source: RedisMasterSource): NamedClient {
  const client = clientFrom(option, source);
  return { name: addressOf(client.options), client };
}

// Any error while a source is read means that the source is invalid.
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
  if (typeof source !== 'object' || source === null) {
    const advice = source === undefined ? ': an environment variable may be missing' : '';
    throw new RedlockConfigError(option, source, REQUIREMENT + advice);
  }
  if (isClient(source)) return source.duplicate(OWN_SETTINGS) as RedisClient;
  if (!isPlainObject(source) || 'duplicate' in source) throw new RedlockConfigError(option, source, REQUIREMENT);
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
    const advice = 'url' in options ? '; a URL is a string and no option' : '';
    throw new RedlockConfigError(option, options, `must say where the server is: ${names.join(', ')}${advice}`);
  }
  // Before the client reads them.
  if (options.sentinels) checkSentinels(option, options.sentinels, options.name);
  const { durable: _, ...settings } = options as RedisOptions & DurableOption;
  return new Redis({ ...settings, ...OWN_SETTINGS });
}

function checkAddress(option: string, { host, port, path, sentinels, name }: RedisOptions): void {
  if (sentinels) checkSentinels(option, sentinels, name);
  else if (path) checkPath(`${option}.path`, path);
  else checkEndpoint(option, host, port);
}

function checkSentinels(option: string, sentinels: unknown, name: unknown): void {
  list('a list of at least one', checkSentinel, 1)(`${option}.sentinels`, sentinels);
  if (name != null && (typeof name !== 'string' || !PRINTABLE.test(name))) {
    throw new RedlockConfigError(`${option}.name`, name, 'must be a printable text');
  }
}

function checkSentinel(option: string, sentinel: unknown): void {
  if (typeof sentinel !== 'object' || sentinel === null) {
    throw new RedlockConfigError(option, sentinel, 'must say where the sentinel is: host, port');
  }
  const { host = DEFAULT_HOST, port = SENTINEL_PORT } = sentinel as { host?: unknown; port?: unknown };
  checkEndpoint(option, host, port);
}

function checkPath(option: string, path: unknown): void {
  if (typeof path !== 'string') throw new RedlockConfigError(option, path, 'must be a string');
  if (path.includes('://') || !PRINTABLE.test(path)) {
    throw new RedlockConfigError(option, path, 'must be the path of a unix socket');
  }
}

// Without the number of the database, because all databases are lost together.
// Protocol 5.3
function addressOf(options: RedisOptions): string {
  const { host = DEFAULT_HOST, port = REDIS_PORT, path, sentinels, name } = options;
  if (!sentinels) return path ? path : endpointOf({ host, port });
  const addresses = sentinelsIn(options).map(endpointOf);
  return `${name ?? 'master'} of sentinels ${addresses.sort().join(', ')}`;
}
