import { type Clock, elapsedBetween, type Instant, type Timer } from './clock.js';
import { type LockLostCause, LockLostError, type MasterReport, QuorumUnavailableError } from './errors.js';
import type { Member } from './linked-list.js';
import type { Observer } from './observer.js';
import type { Ballot } from './quorum.js';
import type { Random } from './random.js';
import type { CallSettings } from './settings.js';
import type { Holding } from './holding.interface.js';
import type { Place } from './wait-queue.js';
import type { Watch } from './watch.js';
import type { Witness } from './witness.interface.js';

/** The first extension comes after this share of the ttl. */
const EXTEND_AFTER = 1 / 3;
/** A failed extension is tried again after at most this share of the ttl: often enough, and never a hot loop. */
const RETRY_AFTER = 1 / 10;
/** What is due may come earlier by this share of the time until then, together with what is due for other locks. */
const TIMER_SLACK = 1 / 50;
/** Timers have a resolution of a millisecond: less than that is no time to rely on. */
const TIMER_RESOLUTION = 1;

/** What a lease needs from its surroundings. */
export interface LeaseContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: Observer;
  readonly witness: Witness;
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
  /** Where it stands among all that is held. */
  member: Member<Lease> | undefined;
  private readonly acquiredAt: Instant;
  private ttl: number;
  private timer: Timer | undefined;
  private controller: AbortController | undefined;
  private lost: LockLostError | undefined;
  private releasing: Promise<void> | undefined;
  private extending: Promise<unknown> | undefined;
  private fencing: Promise<number> | undefined;
  /** Ends the pause between two tries to agree on a fencing token. */
  private goOn: (() => void) | undefined;
  /** When the next extension is due: so many milliseconds after a moment, or a little earlier. */
  private nextAfter: number;
  private nextSince: Instant;
  private nextSlack: number;

  constructor(
    readonly resources: readonly string[],
    private readonly tenure: Holding,
    private readonly call: CallSettings,
    private readonly context: LeaseContext,
    readonly watch?: Watch,
    /** Where it stands in the lines of this process. */
    readonly place?: Place,
  ) {
    this.acquiredAt = tenure.validSince;
    this.ttl = call.ttl;
    this.nextSince = this.acquiredAt;
    this.nextAfter = Math.floor(this.ttl * EXTEND_AFTER);
    this.nextSlack = Math.floor(this.ttl * TIMER_SLACK);
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
    return this.isOver ? 0 : this.remainingAt(this.context.clock.read());
  }

  /** Whether the lock is held. Looking at the clock is enough to learn of a loss that a timer is late to tell. */
  get isHeld(): boolean {
    return !this.isOver && this.isHeldAt(this.context.clock.read());
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
    let permitted: number | undefined;
    // One round at a time: answers of two rounds could not be told apart. One may begin while the masters hear of the ttl.
    while (this.extending || permitted === undefined) {
      if (this.extending) {
        await this.extending;
      } else {
        const answer = this.context.witness.permit(ttl);
        permitted = typeof answer === 'number' ? answer : await answer;
      }
    }
    this.throwIfLost();
    const { extended, ballot } = await this.extendOnce(Math.min(ttl, permitted));
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

  /** The clock of this process stood still: the lock ends earlier by so many milliseconds. */
  shorten(milliseconds: number): void {
    if (this.isOver) return;
    this.tenure.shorten(milliseconds);
    this.noteTime();
  }

  /** Time may have passed while no timer ran. */
  noteTime(): void {
    if (this.isHeld) this.arm();
  }

  throwIfLost(): void {
    if (!this.isHeld) throw this.lost ?? new LockLostError(this.resources, 'released');
  }

  /** Gives the lock up. Idempotent; never rejects. */
  release(): Promise<void> {
    const now = this.context.clock.read();
    // A loss that nobody has noticed yet must not pass for a release.
    if (!this.isHeldAt(now)) return this.releasing ?? Promise.resolve();
    this.releasing = this.end(now);
    return this.releasing;
  }

  /** Ends the lock against its holder's will. */
  lose(cause: LockLostCause, answers: readonly MasterReport[] = []): void {
    if (this.isOver) return;
    this.lost = new LockLostError(this.resources, cause, answers);
    void this.end(this.context.clock.read());
    this.controller?.abort(this.lost);
    this.context.observer.lockLost?.(this.lost);
  }

  private async agreeOnToken(): Promise<number> {
    for (;;) {
      this.throwIfLost();
      const token = await this.tenure.drawToken();
      // An agreement that comes after the end of the validity counts for nothing.
      this.throwIfLost();
      if (token !== undefined) return token;
      await this.pause(this.ttl * RETRY_AFTER * this.context.random.fraction());
    }
  }

  private pause(delay: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.context.clock.schedule(delay, resolve);
      this.goOn = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  private isHeldAt(now: Instant): boolean {
    if (!this.isOver && this.remainingAt(now) < TIMER_RESOLUTION) this.expire(now);
    return !this.isOver;
  }

  private remainingAt(now: Instant): number {
    return Math.max(0, Math.min(this.tenure.remainingAt(now), this.holdLeftAt(now)));
  }

  private holdLeftAt(now: Instant): number {
    return this.call.maxHold - elapsedBetween(this.acquiredAt, now);
  }

  private expire(now: Instant): void {
    this.lose(this.holdLeftAt(now) < this.tenure.remainingAt(now) ? 'max-hold' : 'expired');
  }

  private end(now: Instant): Promise<void> {
    this.timer?.cancel();
    this.goOn?.();
    this.watch?.ended(this.lost);
    const { minHold } = this.call;
    const keepFor = minHold === 0 ? 0 : Math.max(0, Math.ceil(minHold - elapsedBetween(this.acquiredAt, now)));
    const released = this.tenure.release(keepFor);
    this.context.ended(this, released);
    return released;
  }

  private arm(): void {
    this.timer?.cancel();
    if (this.isOver) return;
    const { clock } = this.context;
    const now = clock.read();
    const remaining = this.remainingAt(now);
    const delay = this.call.extend && !this.extending ? Math.min(remaining, this.untilNext(now)) : remaining;
    // The end is looked at a little early, and then again: most locks end before that, and share what waits for it.
    const slack = delay < remaining ? this.nextSlack : Math.floor(delay * TIMER_SLACK);
    this.timer = clock.schedule(Math.max(0, Math.floor(delay)), () => this.tick(), slack).unref();
  }

  private plan(since: Instant, after: number, slack: number): void {
    this.nextSince = since;
    this.nextAfter = Math.floor(after);
    this.nextSlack = Math.floor(slack);
  }

  private untilNext(now: Instant): number {
    return this.nextAfter - elapsedBetween(this.nextSince, now);
  }

  private tick(): void {
    const now = this.context.clock.read();
    if (!this.isHeldAt(now)) return;
    const isDue = this.untilNext(now) < this.nextSlack + TIMER_RESOLUTION;
    if (this.call.extend && !this.extending && isDue) void this.extendAsAnnounced();
    else this.arm();
  }

  private async extendAsAnnounced(): Promise<void> {
    const permitted = this.context.witness.permit(this.ttl);
    await this.extendOnce(typeof permitted === 'number' ? Math.min(this.ttl, permitted) : this.ttl);
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
      this.plan(this.tenure.validSince, ttl * EXTEND_AFTER, ttl * TIMER_SLACK);
    } else if (ballot.ownedByOther) {
      this.lose('owner-changed', ballot.report);
    } else {
      const { clock, random } = this.context;
      // The shorter of both: a refused change of the ttl leaves the validity of the one before, or less.
      const bound = Math.min(ttl, this.ttl) * RETRY_AFTER;
      this.plan(clock.read(), bound * (1 + random.fraction()) * 0.5, bound * TIMER_SLACK);
    }
    this.arm();
    return { extended, ballot };
  }
}
