import { AsyncLocalStorage } from 'node:async_hooks';
import type { Clock } from '../core/clock.js';
import type { LockObserver } from '../core/observer.js';
import type { Settings } from '../core/settings/settings.js';
import type { Lock } from '../core/lock.js';

interface Frame<Held> {
  readonly held: Held;
  readonly outer: Frame<Held> | undefined;
}

// The locks that the running call chain holds, innermost first.
export class LockContext<Held> {
  private readonly storage = new AsyncLocalStorage<Frame<Held>>();

  run<T>(held: Held, work: () => T, outer = this.innermost): T {
    return this.storage.run({ held, outer }, work);
  }

  get innermost(): Frame<Held> | undefined {
    return this.storage.getStore();
  }

  get isEmpty(): boolean {
    return this.innermost === undefined;
  }

  // Innermost first.
  get all(): readonly Held[] {
    const all: Held[] = [];
    for (let frame = this.innermost; frame; frame = frame.outer) all.push(frame.held);
    return all;
  }

  find(condition: (held: Held) => boolean): Held | undefined {
    let frame = this.storage.getStore();
    while (frame && !condition(frame.held)) frame = frame.outer;
    return frame?.held;
  }

  // After the last use: a storage that stays enabled slows down every promise of the process.
  close(): void {
    this.storage.disable();
  }
}

export interface LockEnvironment {
  readonly clock: Clock;
  readonly settings: Settings;
  readonly observer: LockObserver;
  // As far as they are known.
  readonly servers: readonly string[];
}

const DONE = Promise.resolve();

// A lock that is held while work runs: the last of the pieces of work that rely on it releases it.
export class LockScope {
  private ended = false;
  // The one in which this one runs; absent for most.
  private outer: LockScope | undefined;

  private constructor(
    readonly lock: Lock,
    private readonly context: LockContext<LockScope>,
    // The decorated method, for messages.
    readonly place: string | undefined,
    private readonly shared: { users: number; inner: number },
  ) {}

  static of(lock: Lock, context: LockContext<LockScope>, place?: string): LockScope {
    return new LockScope(lock, context, place, { users: 1, inner: 0 });
  }

  // For nested work, even if no caller awaits it and it ends later than this hold.
  join(): LockScope {
    this.shared.users++;
    return new LockScope(this.lock, this.context, this.place, this.shared);
  }

  // Scopes outside of this call chain run in the same hold, as in a `Promise.all`.
  isSplitBeside(chain: readonly LockScope[]): boolean {
    return this.shared.inner > chain.filter(({ outer }) => outer?.shared === this.shared).length;
  }

  // If the lock has ended, this throws and the work does not run.
  run<T>(work: () => T): T {
    const { innermost } = this.context;
    if (innermost !== undefined && !this.outer) {
      this.outer = innermost.held;
      this.outer.shared.inner++;
    }
    return this.context.run(this, this.lock.observed(work), innermost);
  }

  // Work whose lock was lost must not be reported as a success.
  throwIfLost(): void {
    const { loss } = this.lock;
    if (loss) throw loss;
  }

  // Resolves when it is certain whether the lock has lasted. Idempotent; never rejects.
  end(): Promise<void> {
    if (this.ended) return DONE;
    this.ended = true;
    if (this.outer !== undefined) this.outer.shared.inner--;
    return --this.shared.users === 0 ? this.lock.release() : (this.lock.pendingDoubt ?? DONE);
  }
}
