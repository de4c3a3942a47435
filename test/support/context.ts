import type { Clock } from '../../lib/redlock/clock.js';
import { SystemClock } from '../../lib/runtime/system-clock.js';
import type { LockObserver } from '../../lib/operate/observer.js';
import { SystemRandom } from '../../lib/runtime/system.js';
import type { RedlockOptions } from '../../lib/settings/options.js';
import { resolveSettings } from '../../lib/settings/settings.js';
import type { RedisMasterContext } from '../../lib/redis/redis-client.interface.js';
import { RequestEncoder } from '../../lib/redis/request-encoding.js';

/**
 * The context of Redis masters. The restart guard is on only on request: test servers have just started, so it would
 * let them wait.
 */
export function contextOf(
  options: RedlockOptions = {},
  observer: LockObserver = {},
  clock: Clock = new SystemClock(),
): RedisMasterContext {
  return {
    clock,
    random: new SystemRandom(),
    settings: resolveSettings(options),
    observer,
    encoder: new RequestEncoder(),
  };
}
