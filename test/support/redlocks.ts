import type { Clock } from '../../lib/redlock/clock.js';
import { SystemClock } from '../../lib/runtime/system-clock.js';
import type { Duration } from '../../lib/settings/duration.js';
import type { Lock } from '../../lib/locks/lock.js';
import type { Master } from '../../lib/masters/master.interface.js';
import type { LockObserver } from '../../lib/operate/observer.js';
import type { Random } from '../../lib/redlock/holder.js';
import { SystemRandom } from '../../lib/runtime/system.js';
import { LockManager } from '../../lib/locks/lock-manager.js';
import type { AcquireOptions, RedlockOptions } from '../../lib/settings/options.js';
import { resolveCall, resolveSettings } from '../../lib/settings/settings.js';
import { contextOf } from './context.js';
import type { RedisMasterContext } from '../../lib/redis/redis-client.interface.js';
import { redisMasters } from '../../lib/redis/master-source.js';
import type { RedisMasterSource } from '../../lib/redis/source.interface.js';

/** The algorithm with its own masters, as in an application but without Nest. */
export class Contender implements AsyncDisposable {
  readonly settings;
  readonly redlock: LockManager;

  constructor(
    readonly masters: readonly Master[],
    options: RedlockOptions = {},
    observer: LockObserver = {},
    random: Random = new SystemRandom(),
    context?: RedisMasterContext,
  ) {
    this.settings = resolveSettings(options);
    const { clock = new SystemClock() } = context ?? {};
    this.redlock = new LockManager(masters, this.settings, { clock, random, observer });
  }

  /** Creates a contender on Redis servers. Resolves when a quorum can vote. */
  static async on(
    sources: readonly RedisMasterSource[],
    options: RedlockOptions = {},
    observer: LockObserver = {},
    { within = 10_000, clock }: { readonly within?: number; readonly clock?: Clock } = {},
  ): Promise<Contender> {
    const context = contextOf(options, observer, clock);
    const masters = redisMasters('masters', sources, context);
    const contender: Contender = new Contender(masters, options, observer, context.random, context);
    try {
      await contender.redlock.masters.connect(within);
      return contender;
    } catch (error) {
      await contender.close();
      throw error;
    }
  }

  /** `isNested`: its call chain holds a lock. */
  async acquire(
    resources: string | readonly string[],
    ttl?: Duration,
    options: AcquireOptions = {},
    isNested = false,
  ): Promise<Lock> {
    const list = typeof resources === 'string' ? [resources] : resources;
    const call = resolveCall(this.settings, ttl === undefined ? options : { ttl, ...options });
    return this.redlock.acquire(list, call, { isNested });
  }

  close(): Promise<void> {
    return this.redlock.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
