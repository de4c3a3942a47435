import type { Lock } from './core/lock.js';
import type { LockContext } from './lock-context.js';

/** A lock for the time of some work. */
export class Hold {
  private ended = false;

  private constructor(
    readonly lock: Lock,
    private readonly context: LockContext<Hold>,
    /** How much work relies on the lock: the last to end releases it. */
    private readonly shared: { users: number },
  ) {}

  static of(lock: Lock, context: LockContext<Hold>): Hold {
    return new Hold(lock, context, { users: 1 });
  }

  /** The same lock for work inside this one, even if nobody waits for it and it ends later. */
  join(): Hold {
    this.shared.users++;
    return new Hold(this.lock, this.context, this.shared);
  }

  /** Runs a piece of the work in the context of the lock. */
  run<T>(work: () => T): T {
    return this.context.run(this, this.lock.observed(work));
  }

  /** Runs the whole work and ends the hold. The work's own error comes first, unchanged and at once. */
  async during<T>(work: () => T | PromiseLike<T>): Promise<T> {
    let result: T;
    try {
      result = await this.run(work);
    } catch (error) {
      void this.end();
      throw error;
    }
    this.throwIfLost();
    await this.end();
    return result;
  }

  /** @throws {LockLostError} if the lock was lost: success would be a lie. */
  throwIfLost(): void {
    const { loss } = this.lock;
    if (loss) throw loss;
  }

  /** Releases the lock, unless other work inside it still runs. Idempotent; never rejects. */
  async end(): Promise<void> {
    if (this.ended) return;
    this.ended = true;
    if (--this.shared.users === 0) await this.lock.release();
  }
}
