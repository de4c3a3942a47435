import type { Clock } from '../core/clock.js';
import type { LockObserver } from '../core/observer.js';
import type { Settings } from '../core/settings/settings.js';

/** What the parts of this package that build on locks share with a lock service. */
export interface LockEnvironment {
  readonly clock: Clock;
  readonly settings: Settings;
  readonly observer: LockObserver;
  /** The servers of its masters, as far as they are known. */
  readonly servers: readonly string[];
}
