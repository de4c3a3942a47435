/** What this library uses of an ioredis client. Structural, since the classes of ioredis 5 and 6 do not fit each other. */
export interface RedisClient {
  readonly status: string;
  readonly options: RedisClientOptions;
  call(command: string, args: (string | number)[]): Promise<unknown>;
  connect(): Promise<void>;
  subscribe(channel: string): Promise<unknown>;
  duplicate(override?: object): RedisClient;
  disconnect(reconnect?: boolean): void;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
}

/** The settings of a client that tell where its server is, and what must not be told. */
export interface RedisClientOptions {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly path?: string | null | undefined;
  readonly sentinels?: readonly { readonly host?: string; readonly port?: number }[] | null | undefined;
  /** Name of the master that the sentinels watch. */
  readonly name?: string | null | undefined;
  readonly password?: string | null | undefined;
  readonly sentinelPassword?: string | null | undefined;
}

/** An ioredis client as a source of settings: it is copied, and otherwise left alone. */
export interface RedisClientSource {
  /** What ioredis says of the connection. */
  readonly status: string;
  /** A client of a Redis Cluster is refused: its nodes are not independent masters. */
  readonly isCluster: boolean;
  /** Makes another client with the same settings, except for these. */
  duplicate(override?: object): object;
}
