import { SystemClock } from '../../lib/core/clock.js';
import type { Observer } from '../../lib/core/observer.js';
import { SystemRandom } from '../../lib/core/random.js';
import type { RedlockOptions } from '../../lib/core/options.js';
import { resolveSettings } from '../../lib/core/settings.js';
import { RequestEncoder } from '../../lib/redis/request-encoding.js';
import type { RedisMasterContext } from '../../lib/redis/recognition.js';

/** What masters on servers need to know. Without a guard unless asked for: test servers have just been started. */
export function contextOf(options: RedlockOptions = {}, observer: Observer = {}): RedisMasterContext {
  return {
    clock: new SystemClock(),
    random: new SystemRandom(),
    settings: resolveSettings(options),
    observer,
    encoder: new RequestEncoder(),
  };
}
