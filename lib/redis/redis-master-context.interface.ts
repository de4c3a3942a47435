import type { Clock } from '../core/clock.js';
import type { LockObserver } from '../core/observer.js';
import type { Random } from '../core/random.js';
import type { Settings } from '../core/settings/settings.js';
import type { Language } from './connection-problem.js';
import type { Endpoint } from './port-language.js';
import type { ClusterTwins } from './cluster/cluster-twins.js';
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
