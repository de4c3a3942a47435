import type { Duration } from './duration.js';
import type { LockLostError } from './errors.js';
import type { Lease } from './lease.js';
import { resolveTtl, type Settings } from './settings.js';

/** A lock that has been acquired: proof of it, and the means to keep it and to give it up. */
export class Lock implements AsyncDisposable {
  readonly #lease: Lease;
  readonly #settings: Settings;

  /** @internal */
  constructor(lease: Lease, settings: Settings) {
    this.#lease = lease;
    this.#settings = settings;
  }

  /** What is locked. */
  get resources(): readonly string[] {
    return this.#lease.resources;
  }

  /**
   * Aborts when the lock is lost, with a {@link LockLostError} as its reason, no later than the end of the validity.
   * Hand it to everything that must not go on without the lock. A release does not abort it.
   */
  get signal(): AbortSignal {
    return this.#lease.signal;
  }

  /** Whether the lock is held now, computed from the clock. */
  get isHeld(): boolean {
    return this.#lease.isHeld;
  }

  /** Milliseconds for which the lock may be relied on if it is not extended; `0` when it is not held. */
  remaining(): number {
    return this.#lease.isHeld ? this.#lease.remaining : 0;
  }

  /** Why the lock was lost; `undefined` while it is held, and after a release. */
  get loss(): LockLostError | undefined {
    return this.#lease.loss;
  }

  /** @throws {LockLostError} unless the lock is held now. */
  assertHeld(): void {
    this.#lease.throwIfLost();
  }

  /**
   * Gives the lock a new life, counted from now.
   *
   * @param ttl life in milliseconds or as text, also for later extensions; default: as before
   * @throws {LockLostError} if the lock is not held, or was lost on the way
   * @throws {QuorumUnavailableError} if too few masters agreed; the lock is still held for `remaining()`
   * @throws {RedlockConfigError} if the ttl cannot work
   */
  async extend(ttl?: Duration): Promise<void> {
    await this.#lease.extend(ttl === undefined ? undefined : resolveTtl(this.#settings, ttl));
  }

  /**
   * A number to send along with each write. The resource refuses a smaller number than the largest that it has seen, and
   * so the late write of a holder that was paused beyond the end of its lock.
   *
   * It is larger than every number that was handed out for these resources before this lock asked for its own: ask
   * before you read what you are going to write. It is also unique for each resource, positive, at most
   * `Number.MAX_SAFE_INTEGER`, and in microseconds of the wall clock or more.
   *
   * The first call takes a round trip, or two if the masters' counters differ; later calls give the same number at once.
   * A lock that is never asked costs nothing for it.
   *
   * @throws {LockLostError} if the lock is not held, or was lost before a quorum agreed
   * @throws {RedlockConfigError} if the clock of this machine is beyond the year 2200
   * @see https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
   */
  fencingToken(): Promise<number> {
    return this.#lease.fencingToken();
  }

  /**
   * Gives the lock up on all masters. Resolves when a quorum has answered, or after `masterTimeout`.
   * Idempotent; never rejects, and never touches a lock that somebody else has acquired since.
   */
  release(): Promise<void> {
    return this.#lease.release();
  }

  /**
   * The same work, as observers want it to run under the lock.
   * @internal
   */
  observed<T>(work: () => T): () => T {
    return this.#lease.watch?.around(work) ?? work;
  }

  /** Releases at the end of an `await using` block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#lease.release();
  }
}
