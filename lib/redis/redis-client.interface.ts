/**
 * The part of an ioredis client that this library uses. Structural, because the classes of ioredis 5 and 6 are
 * incompatible.
 */
export interface RedisClient {
  readonly status: string;
  readonly options: RedisClientOptions;
  /** The socket, while there is one. */
  readonly stream?: { readonly destroyed?: boolean; cork(): void; uncork(): void } | undefined;
  call(command: string, args: (string | number)[]): Promise<unknown>;
  connect(): Promise<void>;
  subscribe(channel: string): Promise<unknown>;
  duplicate(override?: object): RedisClient;
  disconnect(reconnect?: boolean): void;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
}

/** The settings of a client that contain the address of its server and its secrets. */
export interface RedisClientOptions {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly path?: string | null | undefined;
  readonly sentinels?:
    readonly { readonly host?: string; readonly port?: number; readonly family?: number }[] | null | undefined;
  /** The addresses that the sentinels announce, by which this process reaches others. */
  readonly natMap?: unknown;
  /** Whether sentinels are asked that are not listed, too. */
  readonly updateSentinels?: boolean | undefined;
  readonly family?: number | undefined;
  readonly disconnectTimeout?: number | undefined;
  /** Name of the master that the sentinels watch. */
  readonly name?: string | null | undefined;
  readonly db?: number | undefined;
  /** The settings of TLS; absent without TLS. */
  readonly tls?: object | undefined;
  readonly username?: string | null | undefined;
  readonly password?: string | null | undefined;
  readonly sentinelUsername?: string | null | undefined;
  readonly sentinelPassword?: string | null | undefined;
  readonly sentinelTLS?: object | undefined;
  /** Whether `tls` holds for the servers that sentinels name. */
  readonly enableTLSForSentinelMode?: boolean | undefined;
  /** The name by which the server lists the connection; read when it is opened. */
  connectionName?: string | null | undefined;
}

/** An ioredis client as a source of settings: the library copies the settings and does not use the client itself. */
export interface RedisClientSource {
  /** The status of the connection, as ioredis reports it. */
  readonly status: string;
  /** A client of a Redis Cluster is refused: its nodes are not independent masters. */
  readonly isCluster: boolean;
  /** Creates another client with the same settings, except for those in `override`. */
  duplicate(override?: object): object;
}
