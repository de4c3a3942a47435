import { isDeepStrictEqual } from 'node:util';
import { Redis, type RedisOptions } from 'ioredis';
import { RedlockConfigError } from '../../core/errors.js';
import { parseDuration } from '../../core/settings/duration.js';
import { resolveFlag } from '../../core/settings/settings.js';
import { checkOptionNames } from '../../core/settings/option-names.js';
import { checkEndpoint, endpointOf, type NodeAddress, splitEndpoint } from '../endpoint.js';
import { OWN_SETTINGS } from '../own-settings.js';
import { isPlainObject } from '../plain-object.js';
import type { RedisClient } from '../redis-client.interface.js';
import { settingsOfUrl } from '../redis-url.js';
import { redactAddress, UrlError } from '../url-parts.js';
import { type ClusterClient, optionsOfClient } from './cluster-client.js';
import { namesCluster, optionsOfClusterUrl } from './cluster-url.js';
import { translationBy } from '../nat-map.js';

export type { NodeAddress } from '../endpoint.js';
export type {
  RedisClusterNatMap,
  RedisClusterNode,
  RedisClusterOptions,
  RedisClusterSource,
} from './redis-cluster.interface.js';

const PORT = 6379;
const NODE = 'host:port, a redis:// or rediss:// URL, or { host, port }';
const REQUIREMENT =
  'must be a redis+cluster:// or rediss+cluster:// URL, options with the nodes of a cluster, or an ioredis Cluster';

/** What a cluster is reached by: complete and validated. */
export interface ClusterSettings {
  /** `cluster of host:port, host:port`: the sorted seed nodes, lower-cased, without credentials. */
  readonly name: string;
  /** The nodes from which the others are read, each once and in the given order. */
  readonly seeds: readonly NodeAddress[];
  /** `clusterNodeTimeout` in milliseconds. */
  readonly nodeTimeout: number | undefined;
  /**
   * The address by which this process reaches the node that announces the given one; the same if there is no entry.
   *
   * @throws {RedlockConfigError} if a `natMap` that is a function returns an invalid address
   */
  readonly translate: (announced: NodeAddress) => NodeAddress;
  /** Creates a client for one node. It is not connected yet. */
  readonly clientFor: (address: NodeAddress) => RedisClient;
  readonly usesTls: boolean;
  /** Whether requests to all partitions of one primary share a command. */
  readonly batchesPartitions: boolean;
}

/** Options of a cluster, of which none is checked. */
interface GivenOptions extends Omit<RedisOptions, 'natMap'> {
  readonly cluster: unknown;
  readonly natMap?: unknown;
  readonly clusterNodeTimeout?: unknown;
  readonly batchPartitions?: unknown;
  readonly durable?: unknown;
}

interface Seed {
  readonly address: NodeAddress;
  /** Scheme, user, password and family of a URL. */
  readonly settings?: RedisOptions;
}

/** Whether the source of a master is that of a cluster, valid or not. */
export function isClusterSource(source: unknown): boolean {
  if (typeof source === 'string') return namesCluster(source);
  if (typeof source !== 'object' || source === null) return false;
  // Clients of one server have a method `cluster`.
  if ('isCluster' in source) return source.isCluster === true;
  return 'cluster' in source && source.cluster !== undefined && typeof source.cluster !== 'function';
}

/**
 * Reads the source of a cluster. Any error while it is read means that it is invalid.
 *
 * @param option name of the source in error messages
 * @throws {RedlockConfigError} if the source is invalid
 */
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
  if (typeof source === 'string') return optionsOfClusterUrl(source);
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
    batchesPartitions: resolveFlag(`${option}.batchPartitions`, batchPartitions),
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

function seedsOf(option: string, nodes: unknown): readonly Seed[] {
  if (!Array.isArray(nodes) || nodes.length === 0) {
    throw new RedlockConfigError(option, nodes, `must be a list of at least one node: ${NODE}`);
  }
  return Array.from(nodes, (node: unknown, i) => seedOf(`${option}[${i}]`, node));
}

function seedOf(option: string, node: unknown): Seed {
  if (typeof node === 'string') return seedOfText(option, node);
  if (!isPlainObject(node)) throw new RedlockConfigError(option, node, `must be ${NODE}`);
  checkOptionNames(option, node, ['host', 'port']);
  return { address: checkEndpoint(option, node['host'], node['port'] ?? PORT) };
}

function seedOfText(option: string, text: string): Seed {
  if (/^rediss?:\/\//i.test(text)) return seedOfUrl(option, text);
  const address = splitEndpoint(text, PORT);
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

/** The settings that all URLs have in common. They apply to all nodes, and the options may describe TLS in detail. */
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
