import type { Clock } from '../../lib/core/clock.js';
import { SystemClock } from '../../lib/runtime/system-clock.js';
import type { LockObserver } from '../../lib/core/observer.js';
import { SystemRandom } from '../../lib/runtime/system.js';
import type { RedlockOptions } from '../../lib/core/settings/options.js';
import { resolveSettings } from '../../lib/core/settings/settings.js';
import type { RedisMasterContext } from '../../lib/redis/redis-client.interface.js';
import { RequestEncoder } from '../../lib/redis/request-encoding.js';
import { RestartGuard } from '../../lib/redis/guard/restart-guard.js';

interface Surroundings {
  /** Called when the clock of this process proves to be behind. */
  readonly clockLags?: (milliseconds: number) => void;
  readonly clock?: Clock | undefined;
}

/**
 * The context of Redis masters. It has a restart guard only on request: test servers have just started, so a guard
 * would quarantine them.
 */
export function contextOf(
  options: RedlockOptions = {},
  observer: LockObserver = {},
  { clockLags = () => undefined, clock = new SystemClock() }: Surroundings = {},
): RedisMasterContext {
  const random = new SystemRandom();
  const settings = resolveSettings(options);
  const guard = settings.restartGuard
    ? new RestartGuard({ clock, random, settings, observer, clockLags, instance: `test:${process.pid}` })
    : undefined;
  return { clock, random, settings, observer, guard, encoder: new RequestEncoder() };
}
