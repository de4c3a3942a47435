import { type Clock, elapsedBetween, type Instant, type Timer } from './clock.js';
import { holderFrom, type LockHolder, type Random } from './holder.js';
import { type LockLostCause, LockLostError, type MasterReport, QuorumUnavailableError } from './errors.js';
import { ListMember } from './acquire/linked-list.js';
import type { AcquisitionRecorder, LockObserver } from './observer.js';
import type { CallSettings, Settings } from './settings/settings.js';
import type { Extension, LeasedKeys, Tenure } from './acquire/leased-keys.js';
import { mayPassOn, type QueueEntry } from './acquire/process-queue.js';
import { FencingToken } from './fencing.js';
import { ClockDoubt, shiftWall, type WallClockWatch } from './wall-clock.js';
import type { Witness } from './witness.interface.js';
import { LockState } from './state/lock-state.js';
import { StateRegister } from './state/state-register.js';

// As a share of the ttl.
// Protocol 6.1
const EXTEND_AFTER = 1 / 3;
// The most for a retry, as a share of the ttl: soon enough, without a hot loop.
const RETRY_AFTER = 1 / 10;
// A lock is in danger if an extension fails while no more than this share of the ttl is left.
const DANGER_BELOW = 1 / 3;
// A timer may fire early by this share of the period that it covers, so that timers of several locks coincide.
const TIMER_SLACK = 1 / 50;
// Timers have a resolution of one millisecond: a shorter remaining validity cannot be relied on.
const TIMER_RESOLUTION = 1;

// `after` milliseconds after `since`, or up to `slack` milliseconds earlier.
interface Due {
  readonly since: Instant;
  readonly after: number;
  readonly slack: number;
}

function nextDue(ttl: number, since: Instant): Due {
  return { since, after: ttl * EXTEND_AFTER, slack: ttl * TIMER_SLACK };
}

function retryDue(ttl: number, since: Instant, random: Random): Due {
  const bound = ttl * RETRY_AFTER;
  return { since, after: bound * (1 + random.fraction()) * 0.5, slack: bound * TIMER_SLACK };
}

function isDue(due: Due, now: Instant): boolean {
  return untilDue(due, now) < Math.floor(due.slack) + TIMER_RESOLUTION;
}

// For the next extension, if there is one, or for the end of the validity.
function timerFor(due: Due | undefined, remaining: number, now: Instant): [delay: number, slack: number] {
  const delay = due ? Math.min(remaining, untilDue(due, now)) : remaining;
  // The timer for the end of the validity fires a little early and is then armed again. Most locks are released before
  // that, and the slack lets their timers share a due time.
  const slack = due && delay < remaining ? due.slack : delay * TIMER_SLACK;
  return [Math.max(0, Math.floor(delay)), Math.floor(slack)];
}

// For a lock that expired although no extension of it has failed.
function whyNotExtended(isExtended: boolean, ttl: number): string {
  return isExtended
    ? `this process was blocked or suspended, and did not extend it within its ttl of ${ttl} ms`
    : `it was not extended within its ttl of ${ttl} ms: release it in time, or pass \`extend: true\` or a longer ttl`;
}

function untilDue({ since, after }: Due, now: Instant): number {
  return Math.floor(after) - elapsedBetween(since, now);
}

// The masters are not asked for keys that another lease of the process goes on to hold.
const PASSED_ON = Promise.resolve();

export interface AcquiredKeys {
  readonly resources: readonly string[];
  readonly leasedKeys: LeasedKeys;
  readonly call: CallSettings;
  readonly entry?: QueueEntry | undefined;
  // Absent unless the previous holder has passed the keys on.
  readonly tenure?: Tenure | undefined;
}

export interface LeaseContext {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: LockObserver;
  readonly witness: Witness;
  readonly quorum: number;
  readonly masters: number;
  readonly wallClock: WallClockWatch;
  // Called once, when the lock is released, lost or passed on.
  readonly ended: (lease: Lease) => void;
}

// Whether the lock is held is computed from the clock on every read, so a stalled event loop cannot make an expired
// lock appear to be held. One timer serves both the next extension and the end of the validity.
export class Lease extends ListMember<Lease> {
  acquiredAt: Instant;
  private ttl: number;
  private timer: Timer | undefined;
  private controller: AbortController | undefined;
  // Why it was lost, or its release; `undefined` while it is held.
  private end: LockLostError | Promise<void> | undefined;
  // The extension under way.
  private round: Promise<Extension> | undefined;
  // `undefined` unless the last extension has failed.
  private retry: Due | undefined;
  private isInDanger = false;
  // The masters know the holder of these by its token: the next holder needs another one.
  private fencing: FencingToken | undefined;
  private lockState: LockState | undefined;
  // Work has begun under the lock.
  isUsed = false;
  // Absent without an observer, and before work has begun.
  recorder: AcquisitionRecorder | undefined;
  // Absent before the clocks of this process disagree for the first time.
  private doubt: ClockDoubt | undefined;

  readonly resources: readonly string[];
  readonly entry: QueueEntry | undefined;
  private readonly keys: LeasedKeys;
  private readonly call: CallSettings;
  private readonly tenure: Tenure | undefined;

  constructor(
    { resources, leasedKeys, call, entry, tenure }: AcquiredKeys,
    readonly context: LeaseContext,
  ) {
    super();
    this.resources = resources;
    this.keys = leasedKeys;
    this.call = call;
    this.entry = entry;
    this.tenure = tenure;
    this.acquiredAt = tenure ? context.clock.read() : leasedKeys.validSince;
    this.ttl = call.ttl;
  }

  // To be called in the same turn in which work begins: between a grant and its work, other work may block the process.
  // False if the lock has ended. Nothing has relied on it, so that is not a loss.
  begin(recorder: AcquisitionRecorder | undefined): boolean {
    const now = this.context.clock.read();
    // Protocol 4.10
    if (!this.isHeldAt(now)) return false; // @mutant work-begun-without-a-look-at-the-clock
    this.isUsed = true;
    this.recorder = recorder;
    this.arm(now);
    return true;
  }

  get slot(): number | undefined {
    return this.keys.slot;
  }

  get isShared(): boolean {
    return this.call.isShared;
  }

  // As the masters name it; `undefined` unless it is an exclusive lock on one resource.
  get holder(): LockHolder | undefined {
    const { token } = this.keys.stateAccess ?? {};
    return token === undefined ? undefined : holderFrom(token);
  }

  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.lost) this.controller.abort(this.lost);
    }
    return this.controller.signal;
  }

  get remaining(): number {
    return this.isOver || this.doubt?.resolved ? 0 : this.remainingAt(this.context.clock.read());
  }

  // Reads the clock, and so detects an expiry even before a late timer does.
  get isHeld(): boolean {
    return !this.isOver && this.isHeldAt(this.context.clock.read());
  }

  // Resolves when the masters have resolved a doubt. Reads the clock.
  get pendingDoubt(): Promise<void> | undefined {
    return this.isHeld || this.isOver ? undefined : this.doubt?.resolved;
  }

  get isOver(): boolean {
    return this.end !== undefined;
  }

  get isPassedOn(): boolean {
    return this.end === PASSED_ON;
  }

  get loss(): LockLostError | undefined {
    return this.isHeld ? undefined : this.lost;
  }

  async extend(ttl = this.ttl): Promise<void> {
    let permitted: number | undefined;
    // One round at a time: the answers of two rounds are indistinguishable. Another round may begin while the ttl is
    // announced to the masters.
    for (;;) {
      const pending = this.round ?? this.pendingDoubt;
      if (pending) await pending;
      else if (permitted !== undefined) break;
      else {
        const answer = this.context.witness.announceTtl(ttl);
        permitted = typeof answer === 'number' ? answer : await answer;
      }
    }
    this.throwIfLost();
    const { extended, quorumCall } = await this.extendOnce(Math.min(ttl, permitted));
    // A round during which the clocks began to disagree may have failed for that reason only.
    if (!extended && this.pendingDoubt) return this.extend(ttl);
    await this.assertHeld();
    if (!extended) {
      const { quorum, masters } = this.context;
      throw new QuorumUnavailableError('extend the lock', this.resources, quorumCall.report, quorum, masters);
    }
  }

  fencingToken(): Promise<number> {
    const { clock, random } = this.context;
    this.fencing ??= new FencingToken({
      leasedKeys: this.keys,
      clock,
      random,
      longestPause: () => this.ttl * RETRY_AFTER,
      assertHeld: () => this.assertHeld(),
    });
    return this.fencing.value;
  }

  // Absent unless it was drawn.
  get drawnToken(): number | undefined {
    return this.fencing?.drawn;
  }

  get state(): LockState {
    const { clock, random, masters } = this.context;
    const { stateAccess } = this.keys;
    if (!this.lockState) {
      const register = stateAccess && new StateRegister({ clock, id: random.token(), ...stateAccess });
      const masterTimeout = stateAccess?.masterTimeout ?? 0;
      this.lockState = new LockState({ holder: this, clock, masters, register, masterTimeout });
    }
    return this.lockState;
  }

  // Time may have passed while no timer ran.
  noteTime(): void {
    const now = this.context.clock.read();
    if (this.isHeldAt(now)) this.arm(now);
  }

  // The wall clock has moved so many milliseconds further than the monotonic one.
  beginDoubt(lead: number): void {
    if (this.isOver) return;
    this.timer?.cancel();
    this.doubt ??= new ClockDoubt({
      isOver: () => this.isOver,
      round: () => this.round,
      ask: async () => {
        // What the masters know of the ttl may be out of date, if time has passed.
        await this.context.witness.announceTtl(this.ttl);
        return this.keys.verify(this.call.extend ? this.ttl : undefined);
      },
      answered: (answer, leadOfAll) => {
        if (answer?.extended) {
          this.noteExtension(this.ttl);
          this.acquiredAt = shiftWall(this.acquiredAt, leadOfAll);
        } else if (this.isHeld && answer?.quorumCall.ownedByOther) {
          this.lose('owner-changed', this.keys.lastReplies);
        }
        this.noteTime();
      },
    });
    this.doubt.begin(lead);
  }

  // The wall clock was set back: what is measured from earlier readings would be too short.
  noteSetBack(milliseconds: number): void {
    this.acquiredAt = shiftWall(this.acquiredAt, -milliseconds);
    this.keys.noteSetBack(milliseconds);
  }

  // The monotonic clock has missed so many milliseconds.
  noteStandstill(milliseconds: number): void {
    const { monotonic, wall } = this.acquiredAt;
    this.acquiredAt = { monotonic: monotonic - milliseconds, wall };
    // It was planned by the clocks from before the standstill.
    this.retry = undefined;
  }

  // Waits until the masters have resolved a doubt.
  async assertHeld(): Promise<void> {
    const { pendingDoubt } = this;
    if (pendingDoubt) await pendingDoubt;
    this.throwIfLost();
  }

  throwIfLost(): void {
    if (this.isHeld) return;
    const explanation = this.doubt?.explanation;
    const cause = explanation === undefined ? 'released' : 'expired';
    throw this.lost ?? new LockLostError(this.resources, cause, [], explanation);
  }

  release(): Promise<void> {
    const now = this.context.clock.read();
    // Protocol 7.2
    // A loss that has not been detected yet must not be reported as a release.
    if (!this.isHeldAt(now)) {
      if (!this.isOver && this.doubt?.resolved) return this.doubt.resolved.then(() => this.release());
      return this.end instanceof Promise ? this.end : Promise.resolve();
    }
    return this.passOn(now) ?? this.giveBack(now);
  }

  // Ends without a release. Resolves when no extension is under way: false if the keys are lost.
  async detach(): Promise<boolean> {
    const { isHeld } = this;
    if (isHeld) void this.pass();
    await this.round;
    return isHeld;
  }

  // For a lock on which its holder still relies.
  lose(cause: LockLostCause, answers: readonly MasterReport[] = [], explanation?: string): void {
    if (this.isOver) return;
    const loss = new LockLostError(this.resources, cause, answers, explanation);
    this.end = loss;
    if (cause === 'shutdown' && this.call.outlivesShutdown) this.close();
    else void this.giveBack(this.context.clock.read());
    if (!this.isUsed) return;
    this.controller?.abort(loss);
    this.context.observer.lockLost?.(loss);
  }

  private get lost(): LockLostError | undefined {
    return this.end instanceof LockLostError ? this.end : undefined;
  }

  // `undefined` if no waiter of this process takes the lock.
  private passOn(now: Instant): Promise<void> | undefined {
    const { entry, call, keys: leasedKeys, ttl } = this;
    // Protocol 5.2
    if (this.fencing || this.lockState) return undefined; // @mutant lock-passed-on-with-its-token
    if (!entry || this.round || call.minHold > 0 || call.isShared) return undefined;
    const { began, sections } = this.tenure ?? { began: this.acquiredAt, sections: 1 };
    const lock = { leasedKeys, ttl, began, sections };
    if (!mayPassOn(lock, now) || !entry.passOn({ leasedKeys, ttl, began, sections: sections + 1 })) return undefined;
    return this.pass();
  }

  private pass(): Promise<void> {
    this.end = PASSED_ON;
    this.close();
    return PASSED_ON;
  }

  private isHeldAt(now: Instant): boolean {
    if (this.isOver) return false;
    // Protocol 3.4
    this.context.wallClock.check(now); // @mutant clocks-not-compared
    if (this.doubt?.resolved) {
      // Over by the monotonic clock alone: no answer can change that.
      if (this.keys.remainingAt({ ...now, wall: -Infinity }) < TIMER_RESOLUTION) this.expire(now);
      return false;
    }
    // Protocol 3.3 and 6.4
    if (this.remainingAt(now) < TIMER_RESOLUTION) this.expire(now);
    return !this.isOver;
  }

  private remainingAt(now: Instant): number {
    return Math.max(0, Math.min(this.keys.remainingAt(now), this.holdLeftAt(now)));
  }

  private holdLeftAt(now: Instant): number {
    // Protocol 6.5
    return this.call.maxHold - elapsedBetween(this.acquiredAt, now);
  }

  private expire(now: Instant): void {
    if (this.holdLeftAt(now) < this.keys.remainingAt(now)) {
      this.lose('max-hold');
      return;
    }
    const { lastReplies } = this.keys;
    const explanation = lastReplies.length > 0 ? undefined : whyNotExtended(this.call.extend, this.ttl);
    this.lose('expired', lastReplies, this.doubt?.expiryExplanation ?? explanation);
  }

  private giveBack(now: Instant): Promise<void> {
    const { minHold } = this.call;
    // Protocol 7.4
    const keepFor =
      minHold === 0 || !this.isUsed ? 0 : Math.max(0, Math.ceil(minHold - elapsedBetween(this.acquiredAt, now)));
    const released = this.keys.release(keepFor, now);
    if (this.tenure) this.entry?.recordTurn(now);
    this.end ??= released;
    this.close();
    return released;
  }

  private close(): void {
    this.timer?.cancel(); // @mutant timer-of-a-lock-kept
    this.fencing?.end();
    this.recorder?.ended(this.lost);
    this.context.ended(this);
  }

  private arm(now: Instant): void {
    this.timer?.cancel();
    const [delay, slack] = timerFor(this.next, this.remainingAt(now), now);
    this.timer = this.context.clock.schedule(delay, this.tick.bind(this), slack, now).unref();
  }

  // `undefined` if no extension is due, or one is under way.
  private get next(): Due | undefined {
    if (!this.call.extend || this.round) return undefined;
    return this.retry ?? nextDue(this.ttl, this.keys.validSince);
  }

  private tick(): void {
    const now = this.context.clock.read();
    if (!this.isHeldAt(now)) return; // @mutant heal-after-the-deadline
    const { next, ttl } = this;
    if (next && isDue(next, now)) {
      const permitted = this.context.witness.announceTtl(ttl);
      void this.extendOnce(typeof permitted === 'number' ? Math.min(ttl, permitted) : ttl);
    } else this.arm(now);
  }

  private async extendOnce(ttl: number): Promise<Extension> {
    this.round = this.keys.extend(ttl);
    this.noteTime();
    const { extended, quorumCall } = await this.round;
    this.round = undefined;
    if (this.isOver) return { extended: false, quorumCall };
    if (extended) {
      this.noteExtension(ttl);
    } else if (quorumCall.ownedByOther) {
      // Protocol 6.4
      this.lose('owner-changed', this.keys.lastReplies);
    } else {
      const { clock, random, observer } = this.context;
      // The shorter ttl counts: a refused change of the ttl leaves the validity of the previous ttl, or less.
      this.retry = retryDue(Math.min(ttl, this.ttl), clock.read(), random);
      const { remaining } = this;
      if (!this.isInDanger && remaining < this.ttl * DANGER_BELOW) {
        this.isInDanger = true;
        observer.lockInDanger?.(this.resources, remaining, this.keys.lastReplies);
      }
    }
    this.noteTime();
    return { extended, quorumCall };
  }

  private noteExtension(ttl: number): void {
    this.ttl = ttl;
    this.retry = undefined;
    this.isInDanger = false;
    this.doubt?.settle();
  }
}
