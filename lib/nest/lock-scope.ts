import { AsyncLocalStorage } from 'node:async_hooks';
import type { Clock } from '../core/clock.js';
import type { LockObserver } from '../core/observer.js';
import type { Settings } from '../core/settings/settings.js';
import type { Lock } from '../core/lock.js';

interface Frame<Held> {
  readonly held: Held;
  readonly outer: Frame<Held> | undefined;
}

/** The locks that the running call chain holds, innermost first. */
export class LockContext<Held> {
  private readonly storage = new AsyncLocalStorage<Frame<Held>>();

  /** Runs work, and everything that it calls and awaits, under `held`. */
  run<T>(held: Held, work: () => T): T {
    return this.storage.run({ held, outer: this.storage.getStore() }, work);
  }

  /** Whether the running call chain holds none. */
  get isEmpty(): boolean {
    return this.storage.getStore() === undefined;
  }

  /** Finds the innermost entry of the call chain that satisfies the condition. */
  find(condition: (held: Held) => boolean): Held | undefined {
    let frame = this.storage.getStore();
    while (frame && !condition(frame.held)) frame = frame.outer;
    return frame?.held;
  }

  /** Called after the last use: a storage that stays enabled slows down every promise of the process. */
  close(): void {
    this.storage.disable();
  }
}

/** What the parts of this package that build on locks share with a lock service. */
export interface LockEnvironment {
  readonly clock: Clock;
  readonly settings: Settings;
  readonly observer: LockObserver;
  /** The servers of its masters, as far as they are known. */
  readonly servers: readonly string[];
}

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
