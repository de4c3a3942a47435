import type { Clock } from '../../lib/core/clock.js';
import { SystemClock } from '../../lib/runtime/system-clock.js';
import type { Duration } from '../../lib/core/settings/duration.js';
import type { Lock } from '../../lib/core/lock.js';
import type { Master } from '../../lib/core/master.interface.js';
import type { LockObserver } from '../../lib/core/observer.js';
import type { Random } from '../../lib/core/holder.js';
import { SystemRandom } from '../../lib/runtime/system.js';
import { Redlock } from '../../lib/core/redlock.js';
import type { AcquireOptions, RedlockOptions } from '../../lib/core/settings/options.js';
import { resolveCall, resolveSettings } from '../../lib/core/settings/settings.js';
import { contextOf } from './context.js';
import type { RedisMasterContext } from '../../lib/redis/redis-client.interface.js';
import { type RedisMasterSource, redisMasters } from '../../lib/redis/master-source.js';

/** The algorithm with its own masters, as in an application but without Nest. */
export class Contender implements AsyncDisposable {
  private readonly settings;
  readonly redlock: Redlock;

  constructor(
    readonly masters: readonly Master[],
    options: RedlockOptions = {},
    observer: LockObserver = {},
    random: Random = new SystemRandom(),
    context?: RedisMasterContext,
  ) {
    this.settings = resolveSettings(options);
    const { clock = new SystemClock(), guard } = context ?? {};
    this.redlock = new Redlock(masters, this.settings, { clock, random, observer, witness: guard });
  }

  /** Creates a contender on Redis servers. Resolves when a quorum can vote. */
  static async on(
    sources: readonly RedisMasterSource[],
    options: RedlockOptions = {},
    observer: LockObserver = {},
    { within = 10_000, clock }: { readonly within?: number; readonly clock?: Clock } = {},
  ): Promise<Contender> {
    const clockLags = (milliseconds: number): void => contender.redlock.noteStandstill(milliseconds);
    const context = contextOf(options, observer, { clockLags, clock });
    const masters = redisMasters('masters', sources, context);
    const contender: Contender = new Contender(masters, options, observer, context.random, context);
    try {
      await contender.redlock.connect(within);
      return contender;
    } catch (error) {
      await contender.close();
      throw error;
    }
  }

  /** `held`: what the call chain holds. */
  acquire(
    resources: string | readonly string[],
    ttl?: Duration,
    options: AcquireOptions = {},
    held?: readonly string[],
  ): Promise<Lock> {
    const list = typeof resources === 'string' ? [resources] : resources;
    const call = resolveCall(this.settings, ttl === undefined ? options : { ttl, ...options });
    return this.redlock.acquire(list, call, 'fail', held && (() => held));
  }

  close(): Promise<void> {
    return this.redlock.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
