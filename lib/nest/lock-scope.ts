import type { Lock } from '../core/lock.js';
import type { LockContext } from './lock-context.js';

const DONE = Promise.resolve();

/** A lock that is held while some work runs. */
export class LockScope {
  private ended = false;

  private constructor(
    readonly lock: Lock,
    private readonly context: LockContext<LockScope>,
    /** Number of pieces of work that rely on the lock: the last one to end releases it. */
    private readonly shared: { users: number },
  ) {}

  static of(lock: Lock, context: LockContext<LockScope>): LockScope {
    return new LockScope(lock, context, { users: 1 });
  }

  /** The same lock for nested work, even if no caller awaits that work and it ends later than this hold. */
  join(): LockScope {
    this.shared.users++;
    return new LockScope(this.lock, this.context, this.shared);
  }

  /**
   * Runs a part of the work in the context of the lock.
   *
   * @throws {LockLostError} if the lock has ended: then the work does not run
   */
  run<T>(work: () => T): T {
    return this.context.run(this, this.lock.observed(work));
  }

  /** @throws {LockLostError} if the lock was lost: the work must not be reported as a success. */
  throwIfLost(): void {
    const { loss } = this.lock;
    if (loss) throw loss;
  }

  /**
   * Releases the lock, unless other work inside it still runs. Resolves when it is certain whether the lock has lasted.
   * Idempotent; never rejects.
   */
  end(): Promise<void> {
    if (this.ended) return DONE;
    this.ended = true;
    return --this.shared.users === 0 ? this.lock.release() : (this.lock.pendingDoubt ?? DONE);
  }
}
