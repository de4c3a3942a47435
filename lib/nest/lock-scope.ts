import { AsyncLocalStorage } from 'node:async_hooks';
import type { Lock } from '../locks/lock.js';

// The locks that the running call chain holds.
export class LockContext {
  private readonly storage = new AsyncLocalStorage<LockScope | undefined>();

  run<T>(scope: LockScope | undefined, work: () => T): T {
    return this.storage.run(scope, work);
  }

  get innermost(): LockScope | undefined {
    return this.storage.getStore();
  }

  find(condition: (scope: LockScope) => boolean): LockScope | undefined {
    let scope = this.innermost;
    while (scope && !condition(scope)) scope = scope.outer;
    return scope;
  }

  // After the last use: a storage that stays enabled slows down every promise of the process.
  close(): void {
    this.storage.disable();
  }
}

const DONE = Promise.resolve();
// A chain of at most so many scopes is not searched for ended ones.
const SHORT = 4;

// The `then` of a query begins its work, and belongs to the call chain. A promise has begun before.
export function begun<T>(returned: T): T {
  const then: unknown = (returned as Partial<PromiseLike<unknown>> | null | undefined)?.then;
  // Not by its class: queries of some packages extend Promise.
  if (typeof then !== 'function' || then === Promise.prototype.then) return returned;
  return new Promise((resolve, reject) => void Reflect.apply(then, returned, [resolve, reject])) as T;
}

// A lock that is held while work runs: the last of the pieces of work that rely on it releases it.
export class LockScope {
  private ended = false;
  // The one in which this one runs; absent for most.
  outer: LockScope | undefined;
  // Also when the scope around it is forgotten.
  private isNested = false;
  // The number of scopes around this one, ended ones included, and the one above which these are searched for.
  private depth = 0;
  private limit = SHORT;

  private constructor(
    readonly lock: Lock,
    readonly context: LockContext,
    private readonly shared: { users: number },
  ) {}

  static of(lock: Lock, context: LockContext): LockScope {
    return new LockScope(lock, context, { users: 1 });
  }

  // For nested work, even if no caller awaits it and it ends later than this hold.
  join(): LockScope {
    this.shared.users++;
    return new LockScope(this.lock, this.context, this.shared);
  }

  // If the lock has ended, this throws and the work does not run.
  run<T>(work: () => T): T {
    const { innermost } = this.context;
    if (innermost && !this.isNested) {
      this.isNested = true;
      this.outer = innermost;
      this.depth = innermost.depth + 1;
      this.limit = innermost.limit;
      if (this.depth > this.limit) LockScope.forgetEnded(this);
    }
    return this.context.run(
      this,
      this.lock.observed(() => begun(work())),
    );
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
    if (--this.shared.users > 0) return DONE;
    // A promise keeps the context in which it was made, and the lock keeps that of its release.
    return this.isNested ? this.context.run(undefined, () => this.lock.release()) : this.lock.release();
  }

  // Work that begins its next run inside of its lock, as with a timer, would link the scopes of all runs. The chain is
  // searched when it has doubled, so that a run costs the same, however long it is.
  private static forgetEnded(innermost: LockScope): void {
    let [scope, depth] = [innermost, 0];
    while (scope.outer) {
      if (scope.outer.ended) scope.outer = scope.outer.outer;
      else [scope, depth] = [scope.outer, depth + 1];
    }
    innermost.depth = depth;
    innermost.limit = Math.max(SHORT, 2 * depth);
  }
}
