import { Redis, type RedisOptions } from 'ioredis';
import { RedlockConfigError } from '../settings/config.error.js';
import type { Master } from '../masters/master.interface.js';
import { list } from '../settings/table.js';
import {
  checkEndpoint,
  DEFAULT_HOST,
  endpointOf,
  hasForm,
  isPlainObject,
  redactAddress,
  REDIS_PORT,
  SENTINEL_FORM,
  SENTINEL_PORT,
  sentinelsIn,
  settingsOfUrl,
} from './urls.js';
import { OWN_SETTINGS } from './connection.js';
import { isClient, refuseMock, type RedisClient, type RedisMasterContext } from './redis-client.interface.js';
import { ClusterMaster } from './cluster/cluster-master.js';
import { clusterClient, isClusterSource } from './cluster/cluster-client.js';
import { RedisMaster } from './redis-master.js';
import { askBeforeConnecting, splitLogin } from './login.js';
import type { RedisMasterSource } from './source.interface.js';

export type ServerMaster = RedisMaster | ClusterMaster;

export function isServerMaster(master: Master): master is ServerMaster {
  return master instanceof RedisMaster || master instanceof ClusterMaster;
}

const PRINTABLE = /^\P{C}+$/u;

const REQUIREMENT =
  'must be a redis:// or rediss:// URL, the path of a unix socket, ioredis options or an ioredis client';

// A server may replace another one without a restart, so that the guard cannot know what it lacks: it is off by
// default.
export function isGroup(source: unknown): boolean {
  if (isClusterSource(source)) return true;
  if (typeof source === 'string') return hasForm(source, SENTINEL_FORM);
  if (typeof source !== 'object' || source === null) return false;
  const options: unknown = isClient(source) && 'options' in source ? source.options : source;
  return isPlainObject(options) && options['sentinels'] != null;
}

export function redisMasters(
  option: string,
  sources: readonly RedisMasterSource[],
  context: RedisMasterContext,
): ServerMaster[] {
  const masters = sources.map((source, index) => masterFrom(`${option}[${index}]`, source, context));
  refuseTwins(option, masters);
  return masters;
}

// One server has one vote, and the name is its address.
// Protocol 8.5
export function refuseTwins(option: string, masters: readonly { readonly name: string }[]): void {
  masters.forEach(({ name }, index) => {
    const first = masters.findIndex((master) => master.name === name);
    if (first === index) return;
    const requirement = `must be another server than ${option}[${first}], an independent one, or be removed: one server has one vote`;
    throw new RedlockConfigError(`${option}[${index}]`, name, requirement);
  });
}

export function masterFrom(option: string, given: RedisMasterSource, context: RedisMasterContext): ServerMaster {
  // A list in an environment variable may have spaces behind its commas.
  const source = typeof given === 'string' ? given.trim() : given;
  if (!isClusterSource(source)) return redisMaster(option, source, context);
  if (context.settings.restartGuard) throw guarded('a cluster');
  const client = clusterClient(option, source);
  client.options.connectionName ??= connectionName(context);
  return new ClusterMaster(client, context);
}

// Two masters with one name are the same server.
export function redisMaster(option: string, source: RedisMasterSource, context: RedisMasterContext): RedisMaster {
  const { name, client } = redisClient(option, source);
  if (client.options.sentinels && context.settings.restartGuard) throw guarded('a Sentinel group');
  client.options.connectionName ??= connectionName(context);
  return new RedisMaster(name, client, context);
}

function connectionName({ settings }: RedisMasterContext): string {
  return `nestjs-redlock:${settings.instance}`;
}

function guarded(kind: string): RedlockConfigError {
  const requirement = `must be false with ${kind}: a promoted replica may lack locks without having been restarted`;
  return new RedlockConfigError('restartGuard', true, requirement);
}

// The client is not connected yet; the name is the address of its server.
export interface NamedClient {
  readonly name: string;
  readonly client: RedisClient;
  // A cluster or a Sentinel group.
  readonly isGroup: boolean;
}

export function redisClient(option: string, source: RedisMasterSource): NamedClient {
  if (isClusterSource(source)) {
    const client = clusterClient(option, source);
    return { name: client.name, client, isGroup: true };
  }
  const client = clientFrom(option, source);
  return { name: addressOf(client.options), client, isGroup: Boolean(client.options.sentinels) };
}

// Any error while a source is read means that the source is invalid.
function clientFrom(option: string, source: unknown): RedisClient {
  try {
    const client = copyOf(option, source);
    refuseMock(option, client);
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

function clientFromOptions(option: string, given: object): RedisClient {
  const { login, options } = splitLogin(option, given);
  const names: readonly (keyof RedisOptions)[] = ['host', 'port', 'path', 'sentinels'];
  if (!names.some((name) => options[name] !== undefined)) {
    // Otherwise a misspelled option would select a server on this machine.
    const advice = 'url' in options ? '; a URL is a string and no option' : '';
    throw new RedlockConfigError(option, options, `must say where the server is: ${names.join(', ')}${advice}`);
  }
  // Before the client reads them.
  if (options.sentinels) checkSentinels(option, options.sentinels, options.name);
  return askBeforeConnecting(new Redis({ ...options, ...OWN_SETTINGS }), login);
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
