import type { ClusterOptions, RedisOptions } from 'ioredis';

/**
 * The address of a master: a `redis://` or `rediss://` URL, the path of a unix socket, a `redis+sentinel://` or
 * `rediss+sentinel://` URL with the sentinels that watch it and its name, a `redis+cluster://` or `rediss+cluster://` URL
 * with nodes of a cluster, the options of an ioredis client, the nodes of a cluster with such options, or a client or a
 * `Cluster` (of ioredis 5 or 6), whose settings are copied. A cluster is one master.
 */
export type RedisMasterSource =
  string | RedisOptions | RedisLoginOptions | RedisClusterOptions | RedisClientSource | RedisClusterSource;

/** Gives a user or password that changes, such as a token that expires. Asked before each connection, for at most 10 s. */
export type LoginFunction = () => string | PromiseLike<string>;

/** The options of an ioredis client whose user or password changes. */
export interface RedisLoginOptions extends Omit<RedisOptions, 'username' | 'password'> {
  /**
   * The ACL user.
   * @default the user `default`
   */
  readonly username?: string | LoginFunction;
  /**
   * Its password. An error of the function, and an empty result, is the reason why the master does not vote; the function is
   * asked again within a second.
   * @default none
   */
  readonly password?: string | LoginFunction;
}

/** An ioredis client as a source of settings: the library copies the settings and does not use the client itself. */
export interface RedisClientSource {
  /** The status of the connection, as ioredis reports it. */
  readonly status: string;
  /** `false`: the `Cluster` of ioredis is a source of its own. */
  readonly isCluster: boolean;
  /** Creates another client with the same settings, except for those in `override`. */
  duplicate(override?: object): object;
}

/**
 * A Redis Cluster as one master: some of its nodes, and settings of ioredis that apply to the connections to all of
 * them, such as `username`, `password`, `tls` and `family`. `keyPrefix` is ignored.
 */
export interface RedisClusterOptions extends Omit<
  RedisLoginOptions,
  'host' | 'port' | 'path' | 'sentinels' | 'name' | 'db' | 'natMap'
> {
  /**
   * At least one node, better several: `'host:port'`, a `redis://` or `rediss://` URL, or `{ host, port }`, with port
   * 6379 by default and IPv6 addresses in brackets. The others are read from these. User, password, TLS and family of a
   * URL apply to all nodes.
   */
  readonly cluster: readonly (string | RedisClusterNode)[];
  /**
   * The addresses by which this process reaches the nodes, if they announce others, as ioredis takes them.
   * @default the addresses that the nodes announce
   */
  readonly natMap?: ClusterOptions['natMap'];
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

/**
 * An ioredis `Cluster` client (of ioredis 5 or 6) as a source of settings: the library copies its startup nodes and its
 * options, and does not use the client itself.
 */
export interface RedisClusterSource {
  /** Distinguishes a `Cluster` from a client of one server. */
  readonly isCluster: boolean;
  /** The settings of the client. */
  readonly options: {
    /** Settings of the connections to the nodes. */
    readonly redisOptions?: object | undefined;
  };
  /** Creates another client with the same startup nodes and settings, except for those in `overrideOptions`. */
  duplicate(overrideStartupNodes?: never[], overrideOptions?: object): object;
  /** The nodes that the client knows. A client of one server has no such method. */
  nodes(): object[];
}
