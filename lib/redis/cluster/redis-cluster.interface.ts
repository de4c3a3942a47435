import type { RedisOptions } from 'ioredis';
import type { Duration } from '../../core/settings/duration.js';
import type { NodeAddress } from '../endpoint.js';

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
