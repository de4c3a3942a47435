import type { RedisOptions } from 'ioredis';
import type { Clock } from '../core/clock.js';
import type { LockObserver } from '../core/observer.js';
import type { Random } from '../core/holder.js';
import type { Settings } from '../core/settings/settings.js';
import type { Endpoint, Language } from './connection-problem.js';
import type { ClusterTwins } from './cluster/cluster-map.js';
import type { RequestEncoder } from './request-encoding.js';
import type { RestartGuard } from './guard/restart-guard.js';

export interface RedisMasterContext {
  readonly clock: Clock;
  readonly settings: Settings;
  readonly random: Random;
  readonly observer: LockObserver;
  // Shared by all masters that receive the same requests.
  readonly encoder: RequestEncoder;
  readonly guard?: RestartGuard | undefined;
  // Without a guard, which would write markers: states are read by those of other processes.
  readonly readsMarkers?: boolean;
  // Absent where no further connection may be opened.
  readonly languageOf?: (endpoint: Endpoint) => Promise<Language | undefined>;
  // All clusters of one service; absent where there is only one master.
  readonly clusters?: ClusterTwins | undefined;
  readonly isAlone?: boolean;
}

// The part of an ioredis client that this library uses. Structural, because the classes of ioredis 5 and 6 are
// incompatible.
export interface RedisClient {
  readonly status: string;
  readonly options: RedisOptions;
  readonly stream?: { readonly destroyed?: boolean; cork(): void; uncork(): void } | undefined;
  call(command: string, args: (string | number)[]): Promise<unknown>;
  connect(): Promise<void>;
  subscribe(channel: string): Promise<unknown>;
  duplicate(override?: object): RedisClient;
  disconnect(reconnect?: boolean): void;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
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

export function isClient(source: object): source is RedisClientSource {
  return 'duplicate' in source && typeof source.duplicate === 'function' && 'isCluster' in source && 'status' in source;
}
