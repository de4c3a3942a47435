import { type Clock, elapsedSince, type Instant, type Timer } from './clock.js';
import { type LockLostCause, LockLostError, type MasterReport, QuorumUnavailableError } from './errors.js';
import type { Observer } from './observer.js';
import type { Ballot } from './quorum.js';
import type { Random } from './random.js';
import type { CallSettings } from './settings.js';
import type { Holding } from './tenure.js';

/** The first extension comes after this share of the ttl. */
const EXTEND_AFTER = 1 / 3;
/** A failed extension is tried again after at most this share of the ttl: often enough, and never a hot loop. */
const RETRY_AFTER = 1 / 10;
/** Timers have a resolution of a millisecond: less than that is no time to rely on. */
const TIMER_RESOLUTION = 1;

/** What a lease needs from its surroundings. */
export interface LeaseContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: Observer;
  readonly quorum: number;
  readonly masters: number;
  /** Called once, when the lock is given up or lost. */
  readonly ended: (lease: Lease, released: Promise<void>) => void;
}

/**
 * Keeps a lock alive while it is needed, and tells its holder when it is not held any more.
 *
 * Whether it is held is computed from the clock each time, so a stalled event loop cannot make a dead lock look alive.
 * One timer serves both the next extension and the end of the validity.
 */
export class Lease {
  private readonly acquiredAt: Instant;
  private ttl: number;
  private timer: Timer | undefined;
  private controller: AbortController | undefined;
  private lost: LockLostError | undefined;
  private releasing: Promise<void> | undefined;
  private extending: Promise<unknown> | undefined;
  private fencing: Promise<number> | undefined;
  private next: { readonly since: Instant; readonly delay: number };

  constructor(
    readonly resources: readonly string[],
    private readonly tenure: Holding,
    private readonly call: CallSettings,
    private readonly context: LeaseContext,
  ) {
    this.acquiredAt = tenure.validSince;
    this.ttl = call.ttl;
    this.next = { since: this.acquiredAt, delay: this.ttl * EXTEND_AFTER };
    this.arm();
  }

  /** Aborts with the {@link LockLostError} when the lock is lost. */
  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.lost) this.controller.abort(this.lost);
    }
    return this.controller.signal;
  }

  /** Milliseconds for which the lock may still be relied on. Never negative. */
  get remaining(): number {
    if (this.isOver) return 0;
    return Math.max(0, Math.min(this.tenure.remaining, this.holdLeft));
  }

  /** Whether the lock is held. Looking at the clock is enough to learn of a loss that a timer is late to tell. */
  get isHeld(): boolean {
    if (!this.isOver && this.remaining < TIMER_RESOLUTION) this.expire();
    return !this.isOver;
  }

  /** Whether the lock has been released or lost. */
  get isOver(): boolean {
    return this.lost !== undefined || this.releasing !== undefined;
  }

  /** Why the lock was lost; `undefined` while it is held, and after a release. */
  get loss(): LockLostError | undefined {
    return this.isHeld ? undefined : this.lost;
  }

  /** Gives the lock a new life of `ttl` milliseconds, now and at every later extension. */
  async extend(ttl = this.ttl): Promise<void> {
    // One round at a time: answers of two rounds could not be told apart.
    while (this.extending) await this.extending;
    this.throwIfLost();
    const { extended, ballot } = await this.extendOnce(ttl);
    this.throwIfLost();
    if (!extended) {
      const { quorum, masters } = this.context;
      throw new QuorumUnavailableError('extend the lock', this.resources, ballot.report, quorum, masters);
    }
  }

  /** The fencing token of the lock, once a quorum has agreed on it. */
  fencingToken(): Promise<number> {
    this.fencing ??= this.agreeOnToken().catch((error: unknown) => {
      // Later it may succeed.
      this.fencing = undefined;
      throw error;
    });
    return this.fencing;
  }

  throwIfLost(): void {
    if (!this.isHeld) throw this.lost ?? new LockLostError(this.resources, 'released');
  }

  /** Gives the lock up. Idempotent; never rejects. */
  release(): Promise<void> {
    // A loss that nobody has noticed yet must not pass for a release.
    if (!this.isHeld) return this.releasing ?? Promise.resolve();
    this.releasing = this.end();
    return this.releasing;
  }

  /** Ends the lock against its holder's will. */
  lose(cause: LockLostCause, answers: readonly MasterReport[] = []): void {
    if (this.isOver) return;
    this.lost = new LockLostError(this.resources, cause, answers);
    void this.end();
    this.controller?.abort(this.lost);
    this.context.observer.lockLost?.(this.lost);
  }

  private async agreeOnToken(): Promise<number> {
    for (;;) {
      this.throwIfLost();
      const token = await this.tenure.confirm();
      // An agreement that comes after the end of the validity counts for nothing.
      this.throwIfLost();
      if (token !== undefined) return token;
      await this.pause(this.ttl * RETRY_AFTER * this.context.random.fraction());
    }
  }

  private pause(delay: number): Promise<void> {
    return new Promise((resolve) => void this.context.clock.schedule(delay, resolve));
  }

  private get holdLeft(): number {
    return this.call.maxHold - elapsedSince(this.context.clock, this.acquiredAt);
  }

  private expire(): void {
    this.lose(this.holdLeft < this.tenure.remaining ? 'max-hold' : 'expired');
  }

  private end(): Promise<void> {
    this.timer?.cancel();
    const held = elapsedSince(this.context.clock, this.acquiredAt);
    const keepFor = Math.max(0, Math.ceil(this.call.minHold - held));
    const released = this.tenure.release(keepFor);
    this.context.ended(this, released);
    return released;
  }

  private arm(): void {
    this.timer?.cancel();
    if (this.isOver) return;
    const awaitsExtension = this.call.extend && !this.extending;
    const delay = Math.min(this.remaining, awaitsExtension ? this.untilNext : Infinity);
    this.timer = this.context.clock.schedule(Math.max(0, Math.floor(delay)), () => this.tick()).unref();
  }

  private get untilNext(): number {
    return this.next.delay - elapsedSince(this.context.clock, this.next.since);
  }

  private tick(): void {
    if (!this.isHeld) return;
    if (this.call.extend && !this.extending && this.untilNext < TIMER_RESOLUTION) void this.extendOnce(this.ttl);
    else this.arm();
  }

  private async extendOnce(ttl: number): Promise<{ readonly extended: boolean; readonly ballot: Ballot }> {
    const round = this.tenure.extend(ttl);
    this.extending = round;
    this.arm();
    const { extended, ballot } = await round;
    this.extending = undefined;
    if (this.isOver) return { extended: false, ballot };
    if (extended) {
      this.ttl = ttl;
      this.next = { since: this.tenure.validSince, delay: ttl * EXTEND_AFTER };
    } else if (ballot.ownedByOther) {
      this.lose('owner-changed', ballot.report);
    } else {
      const { clock, random } = this.context;
      // The shorter of both: a refused change of the ttl leaves the validity of the one before, or less.
      const bound = Math.min(ttl, this.ttl) * RETRY_AFTER;
      this.next = { since: clock.read(), delay: bound * (1 + random.fraction()) * 0.5 };
    }
    this.arm();
    return { extended, ballot };
  }
}
