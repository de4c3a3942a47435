import { elapsedBetween, type Instant, type Timer } from './clock.js';
import { LockLostError, QuorumUnavailableError } from './errors.js';
import { giveBack } from './give-back.js';
import { expiryOf } from './loss.js';
import { type Due, isDue, nextDue, retryDue, TIMER_RESOLUTION, timerFor } from './keep-alive.js';
import { ListMember } from './linked-list.js';
import type { Mutex } from './mutex.js';
import { quorumOf } from './quorum.js';
import type { Extension } from './round.js';
import type { LeaseContext, PassedLock, Terms } from './terms.js';

// A lock is in danger if an extension fails while no more than this share of the ttl is left.
const DANGER_BELOW = 1 / 3;

// Whether the lock is held is computed from the clock on every read, so a stalled event loop cannot make an expired
// lock appear to be held. One timer serves both the next extension and the end of the validity.
export class Lease extends ListMember<Lease> {
  acquiredAt: Instant;
  ttl: number;
  private timer: Timer | undefined;
  private controller: AbortController | undefined;
  // Why it was lost, or its release; `undefined` while it is held.
  private end: LockLostError | Promise<void> | undefined;
  // Present once the lock was seen to have ended. It stays, though the wall clock may be set back.
  private expiry: LockLostError | undefined;
  // The extension under way.
  private round: Promise<Extension> | undefined;
  // Present until the outcome of the extension with which it was passed on.
  passed: PassedLock | undefined;
  // `undefined` unless the last extension has failed.
  private retry: Due | undefined;
  private isInDanger = false;
  private endListeners: (() => void)[] | undefined;
  // Work has begun under the lock.
  isUsed = false;
  // Nothing outside this process knows of its token.
  mayPassOn = true;

  constructor(
    readonly terms: Terms<Lease>,
    readonly mutex: Mutex,
    readonly context: LeaseContext<Lease>,
  ) {
    super();
    this.acquiredAt = mutex.since;
    this.ttl = terms.call.ttl;
  }

  get resources(): readonly string[] {
    return this.terms.resources;
  }

  // To be called in the same turn in which work begins: between a grant and its work, other work may block the process.
  // False if the lock has ended. Nothing has relied on it, so that is not a loss.
  begin(): boolean {
    const now = this.context.clock.read();
    // Protocol 4.10
    if (!this.check(now)) return false;
    this.isUsed = true;
    this.arm(now);
    return true;
  }

  // From the holder before it.
  takeOver(passed: PassedLock): void {
    this.passed = passed;
    this.acquiredAt = this.context.clock.read();
    if (passed.outcome?.isLost) this.lose(new LockLostError(this.resources, 'gone'));
    else void this.extendOnce(this.ttl, passed.extension);
  }

  onEnd(listener: () => void): void {
    (this.endListeners ??= []).push(listener);
  }

  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = this.context.controller();
      if (this.lost) this.controller.abort(this.lost);
    }
    return this.controller.signal;
  }

  get remaining(): number {
    return this.isOver ? 0 : this.remainingAt(this.context.clock.read());
  }

  get isHeld(): boolean {
    return !this.isOver && this.isHeldAt(this.context.clock.read());
  }

  get isOver(): boolean {
    return this.end !== undefined;
  }

  get loss(): LockLostError | undefined {
    return this.isHeld || this.isOver ? this.lost : this.expiry;
  }

  async extend(ttl = this.ttl): Promise<void> {
    const opened = this.context.reopened();
    if (opened) await opened;
    // One round at a time: the answers of two rounds are indistinguishable.
    while (this.round) await this.round;
    this.throwIfLost();
    const { extended, quorumCall } = await this.extendOnce(ttl);
    this.throwIfLost();
    if (extended) return;
    const { masters } = this.context;
    throw new QuorumUnavailableError('extend the lock', this.resources, quorumCall.report, quorumOf(masters), masters);
  }

  // Ends the lock if its validity has ended. False if it is over.
  check(now: Instant): boolean {
    if (!this.isHeldAt(now) && this.expiry) this.lose(this.expiry);
    return !this.isOver;
  }

  // Time may have passed while no timer ran.
  noteTime(): void {
    const now = this.context.clock.read();
    if (this.check(now)) this.arm(now);
  }

  throwIfLost(): void {
    if (this.check(this.context.clock.read())) return;
    throw this.lost ?? new LockLostError(this.resources, 'released');
  }

  release(): Promise<void> {
    const now = this.context.clock.read();
    // A loss that has not been detected yet must not be reported as a release.
    // Protocol 7.2
    if (this.check(now)) return this.giveBack(now);
    return this.end instanceof Promise ? this.end : Promise.resolve();
  }

  // For a lock on which its holder still relies.
  lose(loss: LockLostError): void {
    if (this.isOver) return;
    this.end = loss;
    if (loss.cause === 'shutdown' && this.terms.call.outlivesShutdown) this.close();
    else void this.giveBack(this.context.clock.read());
    if (this.isUsed) this.report(loss);
  }

  // That its release has shown.
  noteLoss(loss: LockLostError): void {
    if (this.lost) return;
    this.end = loss;
    this.report(loss);
  }

  get lost(): LockLostError | undefined {
    return this.end instanceof LockLostError ? this.end : undefined;
  }

  private isHeldAt(now: Instant): boolean {
    if (this.isOver) return false;
    // Protocol 3.3 and 6.4
    if (this.remainingAt(now) < TIMER_RESOLUTION) this.expiry ??= this.expiryAt(now);
    return !this.expiry;
  }

  remainingAt(now: Instant): number {
    return Math.max(0, Math.min(this.mutex.remainingAt(now), this.holdLeftAt(now)));
  }

  private holdLeftAt(now: Instant): number {
    // Protocol 6.5
    return this.terms.call.maxHold - elapsedBetween(this.acquiredAt, now);
  }

  private expiryAt(now: Instant): LockLostError {
    const { resources, mutex, acquiredAt, ttl } = this;
    const { extend } = this.terms.call;
    const isKeptTooLong = this.holdLeftAt(now) < mutex.remainingAt(now);
    const since = isKeptTooLong ? acquiredAt : mutex.since;
    // Whether the lock would be held by the monotonic clock alone.
    // Protocol 3.1
    const isStepped = this.remainingAt({ monotonic: now.monotonic, wall: -Infinity }) >= TIMER_RESOLUTION;
    const lead = isStepped ? now.wall - since.wall - (now.monotonic - since.monotonic) : 0;
    return expiryOf({ resources, isKeptTooLong, lead, extend, ttl, replies: mutex.lastReplies });
  }

  private giveBack(now: Instant): Promise<void> {
    // A loss has been reported, and a lock that was not used protects nothing.
    const released = giveBack(this, now, !this.end && this.isUsed);
    this.end ??= released;
    this.close();
    return released;
  }

  private report(loss: LockLostError): void {
    this.controller?.abort(loss);
    this.context.lost(loss);
  }

  private close(): void {
    this.timer?.cancel(); // @mutant timer-of-a-lock-kept
    for (const listener of this.endListeners ?? []) listener();
    this.context.ended(this);
  }

  private arm(now: Instant): void {
    this.timer?.cancel();
    const [delay, slack] = timerFor(this.next, this.remainingAt(now), now);
    this.timer = this.context.clock.schedule(delay, this.tick.bind(this), slack, now).unref();
  }

  // `undefined` if no extension is due, or one is under way.
  private get next(): Due | undefined {
    if (!this.terms.call.extend || this.round) return undefined;
    return this.retry ?? nextDue(this.ttl, this.mutex.since);
  }

  private tick(): void {
    const now = this.context.clock.read();
    if (!this.check(now)) return; // @mutant heal-after-the-deadline
    const { next, ttl } = this;
    if (next && isDue(next, now)) {
      void this.extendOnce(ttl);
    } else this.arm(now);
  }

  private async extendOnce(ttl: number, extension = this.mutex.extend(ttl)): Promise<Extension> {
    this.round = extension;
    this.noteTime();
    const { extended, quorumCall } = await this.round;
    this.round = undefined;
    this.passed = undefined;
    if (this.isOver) return { extended: false, quorumCall };
    if (extended) {
      this.ttl = ttl;
      this.retry = undefined;
      this.isInDanger = false;
    } else if (quorumCall.isLost) {
      // Protocol 6.3
      const isTaken = quorumCall.ownedByOther;
      const answers = isTaken ? this.mutex.lastReplies : quorumCall.report;
      this.lose(new LockLostError(this.resources, isTaken ? 'owner-changed' : 'gone', answers));
    } else {
      const { clock, random, inDanger } = this.context;
      // The shorter ttl counts: a refused change of the ttl leaves the validity of the previous ttl, or less.
      this.retry = retryDue(Math.min(ttl, this.ttl), clock.read(), random);
      const { remaining } = this;
      if (!this.isInDanger && remaining < this.ttl * DANGER_BELOW) {
        this.isInDanger = true;
        inDanger(this.resources, remaining, this.mutex.lastReplies);
      }
    }
    this.noteTime();
    return { extended, quorumCall };
  }
}
