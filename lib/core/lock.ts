import type { Duration } from './settings/duration.js';
import { type LockLostError, RedlockConfigError } from './errors.js';
import { showNames } from './display.js';
import { Keyspace } from './keyspace.js';
import type { LockHolder } from './holder.js';
import type { LockMode } from './settings/options.js';
import type { Lease } from './lease.js';
import { resolveTtl } from './settings/settings.js';
import type { LockState } from './state/lock-state.js';

/** An acquired lock. Reports whether it is still held, and can be extended and released. */
export class Lock implements AsyncDisposable {
  readonly #lease: Lease;

  /** @internal */
  constructor(lease: Lease) {
    this.#lease = lease;
  }

  /** The locked resources. */
  get resources(): readonly string[] {
    return this.#lease.resources;
  }

  /**
   * Aborts when the lock is lost, at the latest when its validity ends. The reason is a {@link LockLostError}.
   * Pass it to all work that must not continue without the lock. A release does not abort it.
   */
  get signal(): AbortSignal {
    return this.#lease.signal;
  }

  /**
   * Whether the lock is held now. Computed from the clock on every read. `false` for a moment if the wall clock is set forward,
   * until the masters have answered that they still have the lock; `loss` and `signal` then show nothing.
   */
  get isHeld(): boolean {
    return this.#lease.isHeld;
  }

  /** Milliseconds for which the lock can be relied on if it is not extended; `0` if it is not held. */
  remaining(): number {
    return this.#lease.isHeld ? this.#lease.remaining : 0;
  }

  /** Why the lock was lost; `undefined` while it is held and after a release. */
  get loss(): LockLostError | undefined {
    return this.#lease.loss;
  }

  /**
   * Whether the lock is held, or will be if the masters confirm that a step of the wall clock took no time.
   * @internal
   */
  get isKept(): boolean {
    return this.#lease.isHeld || !this.#lease.isOver;
  }

  /**
   * Resolves when the masters have resolved a doubt; `undefined` if there is none.
   * @internal
   */
  get pendingDoubt(): Promise<void> | undefined {
    return this.#lease.pendingDoubt;
  }

  /**
   * As the masters name the holder of this lock; `undefined` unless it is exclusive, and on one resource.
   * @internal
   */
  get holder(): LockHolder | undefined {
    return this.#lease.holder;
  }

  /** @throws {LockLostError} unless the lock is held now. */
  assertHeld(): void {
    this.#lease.throwIfLost();
  }

  /**
   * Like {@link assertHeld}, once the masters have resolved a doubt.
   * @internal
   */
  assertKept(): Promise<void> {
    return this.#lease.assertHeld();
  }

  /**
   * Whether other shared holders may have the resources at the same time: `'shared'`, otherwise `'exclusive'`. A permit is
   * `'exclusive'`, because its {@link slot} has one holder.
   */
  get mode(): LockMode {
    return this.#lease.isShared ? 'shared' : 'exclusive';
  }

  /**
   * The slot of the permit, from 0 to one less than the number of permits; `undefined` for a lock. No other holder has the
   * same slot at the same time.
   */
  get slot(): number | undefined {
    return this.#lease.slot;
  }

  /**
   * Renews the lock for a whole ttl, counted from now.
   *
   * @param ttl lifetime in milliseconds or as a string, also for later extensions; default: as before
   * @throws {LockLostError} if the lock is not held, or is lost during the extension
   * @throws {QuorumUnavailableError} if too few masters agreed; the lock is still held for `remaining()`
   * @throws {RedlockConfigError} if the ttl is invalid
   */
  async extend(ttl?: Duration): Promise<void> {
    const { settings } = this.#lease.context;
    await this.#lease.extend(ttl === undefined ? undefined : resolveTtl(settings, ttl, 'lock.extend: ttl'));
  }

  /**
   * A number to send with each write. The resource refuses a number that is smaller than the largest it has seen, and
   * thereby the late write of a holder that was paused beyond the end of its lock.
   *
   * The number is larger than every number issued for these resources before this lock requested its own. Request it
   * before you read the data that you are going to write. It is also unique for each resource, positive, at most
   * `Number.MAX_SAFE_INTEGER`, and at least the wall clock in microseconds.
   *
   * The first call takes one round trip, or two if the masters' counters differ; later calls return the same number at
   * once. A lock whose number is never requested has no cost from it.
   *
   * The numbers of permits order the holders of one {@link slot} only. A shared lock has no number.
   *
   * @throws {LockLostError} if the lock is not held, or is lost before a quorum agrees
   * @throws {RedlockConfigError} if the clock of this machine shows the year 2200 or later, or the lock is shared
   * @see https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
   */
  async fencingToken(): Promise<number> {
    if (this.mode === 'shared') {
      const requirement = `must be 'exclusive' to draw a fencing token`;
      const names = showNames(this.resources);
      const message = `the shared lock on ${names} has no fencing token: draw it under an exclusive lock`;
      throw new RedlockConfigError('mode', this.mode, requirement, message);
    }
    return this.#lease.fencingToken();
  }

  /**
   * For the fence of a database: the keys on the masters, and the number, if {@link fencingToken} has been called.
   * @internal
   */
  get fence(): { readonly keys: readonly string[]; readonly token: number | undefined } {
    const { resources, slot, context, drawnToken } = this.#lease;
    const keyspace = new Keyspace(context.settings.keyPrefix);
    const { keys } = slot === undefined ? keyspace.namesOf(resources) : keyspace.namesOfSlots(resources.join(), [slot]);
    return { keys, token: drawnToken };
  }

  /**
   * A value that is kept with the resource: what this holder leaves for the next one. A lock that does not use it has no
   * cost from it. Only an exclusive lock on one resource has a state.
   */
  get state(): LockState {
    return this.#lease.state;
  }

  /**
   * Releases the lock on all masters. Resolves when a quorum has answered, or after `masterTimeout`. If the wall clock has just
   * been set forward, the masters are first asked whether the lock has lasted.
   * Idempotent. Never rejects, and never affects a lock that another caller has acquired since.
   */
  release(): Promise<void> {
    return this.#lease.release();
  }

  /**
   * Wraps work so that it runs inside the hooks of the observers. It throws instead if the lock is not held by then.
   * @internal
   */
  observed<T>(work: () => T): () => T {
    const whileHeld = (): T => {
      this.assertHeld();
      return work();
    };
    return this.#lease.recorder?.around(whileHeld) ?? whileHeld;
  }

  /** Releases the lock at the end of an `await using` block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#lease.release();
  }
}
