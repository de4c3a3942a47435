import type { Clock } from '../core/clock.js';
import type { LockObserver } from '../core/observer.js';
import type { Random } from '../core/holder.js';
import type { Settings } from '../core/settings/settings.js';
import type { Endpoint, Language } from './connection-problem.js';
import type { ClusterTwins } from './cluster/cluster-master.js';
import type { RequestEncoder } from './request-encoding.js';
import type { RestartGuard } from './guard/restart-guard.js';

/** The dependencies of a master on a Redis server. */
export interface RedisMasterContext {
  readonly clock: Clock;
  readonly settings: Settings;
  readonly random: Random;
  readonly observer: LockObserver;
  /** Shared by all masters that receive the same requests. */
  readonly encoder: RequestEncoder;
  /** Shared by all masters; `undefined` where the restart guard is off. */
  readonly guard?: RestartGuard | undefined;
  /** Finds out which language a port speaks, over connections of its own; absent where it must not open any. */
  readonly languageOf?: (endpoint: Endpoint) => Promise<Language | undefined>;
  /** All clusters of one service; absent where there is only one master. */
  readonly clusters?: ClusterTwins | undefined;
  /** Whether this is the only master. */
  readonly isAlone?: boolean;
}

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
