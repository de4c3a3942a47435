import type { Duration } from '../settings/duration.js';
import { FencingToken } from '../fencing/fencing-token.js';
import type { Held } from '../fencing/held.js';
import { LockState } from '../fencing/lock-state.js';
import type { Master } from '../masters/master.interface.js';
import type { Clock } from '../redlock/clock.js';
import type { LockLostError } from '../redlock/errors.js';
import type { LockHolder, Random } from '../redlock/holder.js';
import type { Lease } from '../redlock/lease.js';
import { showNames } from '../redlock/names.js';
import { RedlockConfigError } from '../settings/config.error.js';
import type { LockMode } from '../settings/options.js';
import { resolveTtl, type Settings } from '../settings/settings.js';
import { callOf, heldBy, holderOf, slotOf } from './held-call.js';

export interface LockContext {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly random: Random;
  readonly masters: readonly Master[];
  readonly noteTtl: ((where: string, ttl: number) => void) | undefined;
}

/** An acquired lock. Reports whether it is still held, and can be extended and released. */
export class Lock implements AsyncDisposable {
  readonly #lease: Lease;
  readonly #context: LockContext;
  #fencing: FencingToken | undefined;
  #state: LockState | undefined;

  /** @internal */
  constructor(lease: Lease, context: LockContext) {
    this.#lease = lease;
    this.#context = context;
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
   * Whether the lock is held now. Computed from the clock on every read, and right even if this process was blocked: what
   * the end of the lock causes (the signal, the release) follows in the next turn of the event loop.
   */
  get isHeld(): boolean {
    return this.#lease.isHeld;
  }

  /** Milliseconds for which the lock can be relied on if it is not extended; `0` if it is not held. */
  remaining(): number {
    return this.#lease.isHeld ? this.#lease.remaining : 0;
  }

  /** Milliseconds that the call spent waiting for other holders or for masters: `0` if its first attempt was granted. */
  get waited(): number {
    return callOf(this.#lease).waited;
  }

  /**
   * How many attempts the call has made: `1` if the first one was granted, `0` if a holder of its process passed the lock
   * on to it.
   */
  get attempts(): number {
    return callOf(this.#lease).attempts;
  }

  /** Why the lock was lost; `undefined` while it is held and after a release. */
  get loss(): LockLostError | undefined {
    return this.#lease.loss;
  }

  /**
   * As the masters name the holder of this lock; `undefined` unless it is exclusive, and on one resource.
   * @internal
   */
  get holder(): LockHolder | undefined {
    return holderOf(this.#lease);
  }

  /**
   * The decorated method that holds it; `undefined` for code of the application.
   * @internal
   */
  get caller(): string | undefined {
    return callOf(this.#lease).caller;
  }

  /**
   * Ends the lock if its validity has ended: whether it is held.
   * @internal
   */
  check(): boolean {
    const lease = this.#lease;
    return lease.check(this.#context.clock.read());
  }

  /** @throws {LockLostError} unless the lock is held now. */
  assertHeld(): void {
    this.#lease.throwIfLost();
  }

  /**
   * Whether other shared holders may have the resources at the same time: `'shared'`, otherwise `'exclusive'`. A permit is
   * `'exclusive'`, because its {@link slot} has one holder.
   */
  get mode(): LockMode {
    return callOf(this.#lease).call.isShared ? 'shared' : 'exclusive';
  }

  /**
   * The slot of the permit, from 0 to one less than the number of permits; `undefined` for a lock. No other holder has the
   * same slot at the same time.
   */
  get slot(): number | undefined {
    return slotOf(this.#lease);
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
    if (ttl === undefined) return this.#lease.extend();
    const { settings, noteTtl } = this.#context;
    const milliseconds = resolveTtl(settings, ttl, 'lock.extend: ttl');
    noteTtl?.('lock.extend: ', milliseconds);
    return this.#lease.extend(milliseconds);
  }

  /**
   * A number to send with each write. The resource refuses a number that is smaller than the largest it has seen, and
   * thereby the late write of a holder that was paused beyond the end of its lock.
   *
   * The number is larger than every number issued for these resources before this lock requested its own. Request it
   * before you read the data that you are going to write. It is also unique for each resource, positive, at most
   * `Number.MAX_SAFE_INTEGER`, and at least the wall clock of a master in microseconds.
   *
   * The first call takes two round trips, or one if the masters' counters and clocks do not differ; later calls return the
   * same number at once. A lock whose number is never requested has no cost from it.
   *
   * The numbers of permits order the holders of one {@link slot} only. A shared lock has no number.
   *
   * @throws {LockLostError} if the lock is not held, or is lost before a quorum agrees
   * @throws {RedlockConfigError} if the lock is shared
   * @see https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
   */
  async fencingToken(): Promise<number> {
    if (this.mode === 'shared') {
      const requirement = `must be 'exclusive' to draw a fencing token`;
      const names = showNames(this.resources);
      const message = `the shared lock on ${names} has no fencing token: draw it under an exclusive lock`;
      throw new RedlockConfigError('mode', this.mode, requirement, message);
    }
    this.#fencing ??= new FencingToken(this.#held);
    return this.#fencing.value;
  }

  /**
   * For the fence of a database: the keys on the masters, and the number, if {@link fencingToken} has been called.
   * @internal
   */
  get fence(): { readonly keys: readonly string[]; readonly token: number | undefined } {
    return { keys: this.#held.owned.keys, token: this.#fencing?.drawn };
  }

  /**
   * A value that is kept with the resource: what this holder leaves for the next one. A lock that does not use it has no
   * cost from it. Only an exclusive lock on one resource has a state.
   */
  get state(): LockState {
    return (this.#state ??= new LockState(this.#held));
  }

  /**
   * Releases the lock on all masters. Resolves when a quorum has answered, or after `masterTimeout`.
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
    return callOf(this.#lease).recorder?.around(whileHeld) ?? whileHeld;
  }

  get #held(): Held {
    return heldBy(this.#lease, this.#context, this.#context.masters);
  }

  /** Releases the lock at the end of an `await using` block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#lease.release();
  }
}
