import type { Clock } from '../core/clock.js';
import type { Observer } from '../core/observer.js';
import type { Random } from '../core/random.js';
import type { Settings } from '../core/settings.js';
import type { RequestEncoder } from './request-encoding.js';
import type { RestartGuard } from './guard/restart-guard.js';

/** What a master on a server needs to know of its surroundings. */
export interface RedisMasterContext {
  readonly clock: Clock;
  readonly settings: Settings;
  readonly random: Random;
  readonly observer: Observer;
  /** Shared by all masters that are asked the same. */
  readonly encoder: RequestEncoder;
  /** Shared by all masters; `undefined` where the restart guard is off. */
  readonly guard?: RestartGuard | undefined;
  /** Whether there is no other master. */
  readonly isAlone?: boolean;
}
