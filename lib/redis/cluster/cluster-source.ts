import { Redis, type RedisOptions } from 'ioredis';
import {
  checkEndpoint,
  endpointOf,
  hasForm,
  type HostListForm,
  isPlainObject,
  type NodeAddress,
  redactAddress,
  REDIS_PORT,
  settingsOfUrl,
  splitEndpoint,
  splitHostListUrl,
  translationBy,
  UrlError,
} from '../urls.js';
import { type Duration, parseDuration } from '../../core/settings/duration.js';
import { RedlockConfigError } from '../../core/errors.js';
import { isDeepStrictEqual } from 'node:util';
import { flag, list, checkOptionNames } from '../../core/settings/table.js';
import { OWN_SETTINGS } from '../connection.js';
import type { RedisClient } from '../redis-client.interface.js';

const FORM: HostListForm = {
  scheme: 'cluster',
  names: ['a node', 'the nodes of a cluster'],
  defaultPort: REDIS_PORT,
  parameters: ['family', 'clusterNodeTimeout', 'batchPartitions'],
  insteadOfFragment: 'a # in a password is written %23',
};

const FLAGS = new Map([
  ['true', true],
  ['false', false],
]);

function optionsOfUrl(address: string): GivenOptions {
  const { hosts, settings, usesTls, path, query } = splitHostListUrl(address, FORM);
  if (!['', '/', '/0'].includes(path)) {
    throw new UrlError('must have no path: a cluster has no database but 0, and a / in a password is written %2F');
  }
  const timeout = query.get('clusterNodeTimeout');
  const batches = query.get('batchPartitions');
  return {
    cluster: hosts,
    ...settings,
    ...(timeout !== null && { clusterNodeTimeout: /^\d+$/.test(timeout) ? Number(timeout) : timeout }),
    ...(batches !== null && { batchPartitions: FLAGS.get(batches) ?? batches }),
    ...(usesTls && { tls: {} }),
  };
}

/**
 * A Redis Cluster as one master: some of its nodes, and settings of ioredis that apply to the connections to all of
 * them, such as `username`, `password`, `tls` and `family`. `keyPrefix` is ignored.
 */
export interface RedisClusterOptions extends Omit<
  RedisOptions,
  'host' | 'port' | 'path' | 'sentinels' | 'name' | 'db' | 'natMap'
> {
  /**
   * At least one node, better several: `'host:port'`, a `redis://` or `rediss://` URL, or `{ host, port }`, with port
   * 6379 by default and IPv6 addresses in brackets. The others are read from these. All URLs have the same scheme, user,
   * password and family, which apply to all nodes.
   */
  readonly cluster: readonly (string | RedisClusterNode)[];
  /**
   * The addresses by which this process reaches the nodes, if they announce others: an object with the announced
   * addresses as its keys, `{ '10.0.0.1:6379': { host: 'example.com', port: 7000 } }`, or a function that is called with
   * the announced address, and returns the one to use or `null` for the same.
   * @default the addresses that the nodes announce
   */
  readonly natMap?: RedisClusterNatMap;
  /**
   * The setting `cluster-node-timeout` of the nodes, in milliseconds or as a string such as `'15s'`. Give it only for a
   * service that forbids CLUSTER NODES, or promotes replicas by its own means: then locks wait longer
   * after a failover.
   * @default not needed: the primaries confirm which of them serves a key
   */
  readonly clusterNodeTimeout?: Duration;
  /**
   * Whether requests to all partitions of one primary share a command, in place of a command for each partition: cheaper
   * where many locks are taken at a time. The command declares one of its keys only. Servers of Redis and
   * Valkey check the others themselves; a service that refuses keys that are not declared needs `false`.
   * @default false
   */
  readonly batchPartitions?: boolean;
  /** A cluster has database 0 only. */
  readonly db?: 0;
}

/** One node of a cluster. */
export interface RedisClusterNode {
  /** Its name or address. */
  readonly host: string;
  /**
   * Its port.
   * @default 6379
   */
  readonly port?: number;
}

/** The addresses to use in place of those that nodes announce, as ioredis takes them. */
export type RedisClusterNatMap =
  Readonly<Record<string, NodeAddress>> | ((announced: string) => NodeAddress | null | undefined);

/**
 * An ioredis `Cluster` client (of ioredis 5 or 6) as a source of settings: the library copies its startup nodes, its
 * `redisOptions` and its `natMap`, and does not use the client itself.
 */
export interface RedisClusterSource {
  /** Distinguishes a `Cluster` from a client of one server. */
  readonly isCluster: boolean;
  /** The settings of the client. */
  readonly options: {
    /** Settings of the connections to the nodes. */
    readonly redisOptions?: object | undefined;
    /** The addresses to use in place of those that nodes announce. */
    readonly natMap?: RedisClusterNatMap | undefined;
    /** Must be off: the startup nodes are contacted by their own names. */
    readonly useSRVRecords?: boolean | undefined;
  };
  /** The nodes that the client knows. A client of one server has no such method. */
  nodes(): object[];
}

// The host of a startup node of ioredis that names none.
const LOOPBACK = '127.0.0.1';

interface ClusterClient {
  readonly isCluster: boolean;
  // Declared private by ioredis.
  readonly startupNodes: readonly unknown[];
  readonly options: RedisClusterSource['options'];
}

function optionsOfClient(option: string, { startupNodes, options }: ClusterClient): GivenOptions {
  const { natMap, useSRVRecords } = options;
  if (useSRVRecords) {
    const requirement = 'must be off: the startup nodes are contacted by their own names and ports';
    throw new RedlockConfigError(`${option}.options.useSRVRecords`, useSRVRecords, requirement);
  }
  const { host: _host, port: _port, ...settings }: RedisOptions = options.redisOptions ?? {};
  const nodes = startupNodes.map(startupNodeOf);
  const cluster = nodes.map((node) => (isPlainObject(node) ? { host: node['host'], port: node['port'] } : node));
  return { ...settings, ...settingsOfNodes(nodes), cluster, natMap };
}

// With the defaults of ioredis, for which a number is a port.
function startupNodeOf(node: unknown): unknown {
  if (typeof node === 'number' || (typeof node === 'string' && /^\d+$/.test(node))) {
    return { host: LOOPBACK, port: Number(node) };
  }
  if (!isPlainObject(node)) return node;
  const { host, port } = node;
  return { ...node, host: host || LOOPBACK, port: typeof port === 'string' ? Number(port) : port || undefined };
}

// Without the database, which ioredis ignores.
function settingsOfNodes(nodes: readonly unknown[]): RedisOptions {
  const entries = nodes.filter(isPlainObject).flatMap(Object.entries<unknown>);
  const given = Object.fromEntries(entries.filter(([, value]) => value !== undefined));
  const { host: _host, port: _port, db: _db, ...settings } = given;
  return settings;
}

const NODE = 'host:port, a redis:// or rediss:// URL, or { host, port }';
const REQUIREMENT =
  'must be a redis+cluster:// or rediss+cluster:// URL, options with the nodes of a cluster, or an ioredis Cluster';

export interface ClusterSettings {
  // `cluster of host:port, host:port`: the sorted seed nodes, lower-cased, without credentials.
  readonly name: string;
  readonly seeds: readonly NodeAddress[];
  // `clusterNodeTimeout` in milliseconds.
  readonly nodeTimeout: number | undefined;
  // The given address if there is no entry for it. Throws if a `natMap` that is a function returns an invalid address.
  readonly translate: (announced: NodeAddress) => NodeAddress;
  readonly clientFor: (address: NodeAddress) => RedisClient;
  readonly usesTls: boolean;
  readonly batchesPartitions: boolean;
}

interface GivenOptions extends Omit<RedisOptions, 'natMap'> {
  readonly cluster: unknown;
  readonly natMap?: unknown;
  readonly clusterNodeTimeout?: unknown;
  readonly batchPartitions?: unknown;
  readonly durable?: unknown;
}

interface Seed {
  readonly address: NodeAddress;
  readonly settings?: RedisOptions;
}

export function isClusterSource(source: unknown): boolean {
  if (typeof source === 'string') return hasForm(source, FORM);
  if (typeof source !== 'object' || source === null) return false;
  // Clients of one server have a method `cluster`.
  if ('isCluster' in source) return source.isCluster === true;
  return 'cluster' in source && source.cluster !== undefined && typeof source.cluster !== 'function';
}

// Any error while the source is read means that the source is invalid.
export function clusterSettings(option: string, source: unknown): ClusterSettings {
  try {
    return settingsOf(option, optionsOf(option, source));
  } catch (error) {
    if (error instanceof RedlockConfigError) throw error;
    const value = typeof source === 'string' ? redactAddress(source) : source;
    throw new RedlockConfigError(option, value, error instanceof UrlError ? error.message : REQUIREMENT);
  }
}

function optionsOf(option: string, source: unknown): GivenOptions {
  if (typeof source === 'string') return optionsOfUrl(source);
  const given = source as GivenOptions | ClusterClient;
  return 'isCluster' in given ? optionsOfClient(option, given) : given;
}

function settingsOf(option: string, given: GivenOptions): ClusterSettings {
  const { cluster, natMap, clusterNodeTimeout: timeout, batchPartitions = false, durable, ...options } = given;
  checkOptions(option, options);
  if (durable !== undefined && durable !== false) {
    const requirement = 'must be absent: a failover of a cluster may lose acknowledged writes';
    throw new RedlockConfigError(`${option}.durable`, durable, requirement);
  }
  const seeds = seedsOf(`${option}.cluster`, cluster);
  const settings = { ...options, ...settingsOfUrls(`${option}.cluster`, seeds, options) };
  const addresses = new Map(seeds.map(({ address }) => [endpointOf(address), address]));
  return {
    name: `cluster of ${[...addresses.keys()].sort().join(', ')}`,
    seeds: [...addresses.values()],
    nodeTimeout: timeout === undefined ? undefined : parseDuration(`${option}.clusterNodeTimeout`, timeout, 1),
    translate: translationBy(`${option}.natMap`, natMap),
    clientFor: ({ host, port }) => new Redis({ ...settings, ...OWN_SETTINGS, host, port }),
    usesTls: Boolean(settings.tls),
    batchesPartitions: flag(`${option}.batchPartitions`, batchPartitions),
  };
}

function checkOptions(option: string, options: RedisOptions): void {
  for (const name of ['host', 'port', 'path', 'sentinels'] as const) {
    if (options[name] == null) continue;
    throw new RedlockConfigError(`${option}.${name}`, options[name], 'must be absent: the nodes are given as cluster');
  }
  const db: unknown = options.db ?? 0;
  if (Number(db) !== 0) throw new RedlockConfigError(`${option}.db`, db, 'must be 0: a cluster has no other database');
}

const seedsOf = list(`a list of at least one node: ${NODE}`, seedOf, 1);

function seedOf(option: string, node: unknown): Seed {
  if (typeof node === 'string') return seedOfText(option, node);
  if (!isPlainObject(node)) throw new RedlockConfigError(option, node, `must be ${NODE}`);
  checkOptionNames(option, node, { host: undefined, port: undefined });
  return { address: checkEndpoint(option, node['host'], node['port'] ?? REDIS_PORT) };
}

function seedOfText(option: string, text: string): Seed {
  if (/^rediss?:\/\//i.test(text)) return seedOfUrl(option, text);
  const address = splitEndpoint(text, REDIS_PORT);
  if (address === undefined) throw new RedlockConfigError(option, redactAddress(text), `must be ${NODE}`);
  return { address: checkEndpoint(option, address.host, address.port) };
}

function seedOfUrl(option: string, url: string): Seed {
  const given = settingsOfUrl(url);
  if (typeof given === 'string') throw new RedlockConfigError(option, redactAddress(url), given);
  const { host, port, db = 0, ...settings } = given;
  if (db !== 0) throw new RedlockConfigError(option, redactAddress(url), 'must have no database but 0, as a cluster');
  return { address: checkEndpoint(option, host, port), settings };
}

// They apply to all nodes, so all URLs must agree; the options may describe TLS in detail.
function settingsOfUrls(option: string, seeds: readonly Seed[], options: RedisOptions): RedisOptions {
  const first = seeds.findIndex(({ settings }) => settings !== undefined);
  const common = seeds[first]?.settings ?? {};
  seeds.forEach(({ address, settings }, i) => {
    if (settings === undefined || isDeepStrictEqual(settings, common)) return;
    const requirement = `must have the scheme, user, password and family of ${option}[${first}]: they apply to all nodes`;
    throw new RedlockConfigError(`${option}[${i}]`, endpointOf(address), requirement);
  });
  for (const name of ['username', 'password'] as const) {
    if (common.password === undefined || !options[name] || options[name] === common[name]) continue;
    const requirement = 'must have the user and password of the options beside it, or none';
    throw new RedlockConfigError(`${option}[${first}]`, undefined, requirement, `${option}[${first}] ${requirement}`);
  }
  return { ...common, tls: options.tls ?? common.tls };
}
