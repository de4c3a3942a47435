import type { RedisOptions } from 'ioredis';
import { RedlockConfigError } from '../../core/errors.js';
import { isPlainObject } from '../plain-object.js';
import type { RedisClusterSource } from './redis-cluster.interface.js';

/** The host of a startup node of ioredis that names none. */
const LOOPBACK = '127.0.0.1';

/** What the library reads from an ioredis Cluster. */
export interface ClusterClient {
  readonly isCluster: boolean;
  /** Declared private by ioredis. */
  readonly startupNodes: readonly unknown[];
  readonly options: RedisClusterSource['options'];
}

/** The options that an ioredis Cluster stands for. */
export interface ClusterClientOptions extends Omit<RedisOptions, 'natMap'> {
  readonly cluster: readonly unknown[];
  readonly natMap: unknown;
}

/** @throws {RedlockConfigError} if it finds its nodes in a way that the library does not know */
export function optionsOfClient(option: string, { startupNodes, options }: ClusterClient): ClusterClientOptions {
  const { natMap, useSRVRecords } = options;
  if (useSRVRecords) {
    const requirement = 'must be off: the startup nodes are contacted by their own names and ports';
    throw new RedlockConfigError(`${option}.options.useSRVRecords`, useSRVRecords, requirement);
  }
  const { host: _host, port: _port, ...settings }: RedisOptions = options.redisOptions ?? {};
  const nodes = startupNodes.map(startupNodeOf);
  return { ...settings, ...settingsOfNodes(nodes), cluster: nodes.map(addressOfNode), natMap };
}

/** A startup node with the defaults of ioredis, for which a number is a port. */
function startupNodeOf(node: unknown): unknown {
  if (typeof node === 'number' || (typeof node === 'string' && /^\d+$/.test(node))) {
    return { host: LOOPBACK, port: Number(node) };
  }
  if (!isPlainObject(node)) return node;
  const { host, port } = node;
  return { ...node, host: host || LOOPBACK, port: typeof port === 'string' ? Number(port) : port || undefined };
}

function addressOfNode(node: unknown): unknown {
  return isPlainObject(node) ? { host: node['host'], port: node['port'] } : node;
}

/** Settings that are given with a startup node, except for the database, which ioredis ignores. */
function settingsOfNodes(nodes: readonly unknown[]): RedisOptions {
  const entries = nodes.filter(isPlainObject).flatMap(Object.entries<unknown>);
  const given = Object.fromEntries(entries.filter(([, value]) => value !== undefined));
  const { host: _host, port: _port, db: _db, ...settings } = given;
  return settings;
}
