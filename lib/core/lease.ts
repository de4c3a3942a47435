import { type Clock, elapsedBetween, type Instant, type Timer } from './clock.js';
import { type LockLostCause, LockLostError, type MasterReport, QuorumUnavailableError } from './errors.js';
import { ListMember } from './acquire/linked-list.js';
import type { LockObserver } from './observer.js';
import type { Random } from './random.js';
import type { CallSettings, Settings } from './settings/settings.js';
import type { Extension, LeasedKeys } from './acquire/leased-keys.interface.js';
import { mayPassOn, type Tenure } from './acquire/local-hand-off.js';
import type { QueueEntry } from './acquire/queue-entry.interface.js';
import type { AcquisitionRecorder } from './acquire/acquisition-recorder.js';
import { FencingToken } from './fencing-token.js';
import { shiftWall, type WallClockWatch } from './wall-clock-watch.js';
import type { Witness } from './witness.interface.js';
import { LockState } from './state/lock-state.js';
import { StateRegister } from './state/state-register.js';

/** The next extension is due after this share of the ttl. Protocol 6.1. */
const EXTEND_AFTER = 1 / 3;
/** A failed extension is retried after at most this share of the ttl: soon enough, without a hot loop. */
const RETRY_AFTER = 1 / 10;
/** A lock is in danger if an extension fails while no more than this share of the ttl is left. */
const DANGER_BELOW = 1 / 3;
/** A timer may fire early by this share of the period that it covers, so that timers of several locks coincide. */
const TIMER_SLACK = 1 / 50;
/** Timers have a resolution of one millisecond: a shorter remaining validity cannot be relied on. */
const TIMER_RESOLUTION = 1;
/** The masters are asked so many times whether a lock has lasted while the clocks of this process go on to disagree. */
const MAX_QUESTIONS = 3;
/** The masters are not asked for a lock that the next waiter of the process has taken. */
const PASSED_ON = Promise.resolve();

/** The keys that an acquisition has taken, and what it was asked for. */
export interface AcquiredKeys {
  readonly resources: readonly string[];
  readonly leasedKeys: LeasedKeys;
  readonly call: CallSettings;
  /** Place in the wait queues of this process. */
  readonly entry?: QueueEntry | undefined;
  /** How long this process has had the keys; absent unless the previous holder has passed them on. */
  readonly tenure?: Tenure | undefined;
}

/** The dependencies of a lease. */
export interface LeaseContext {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: LockObserver;
  readonly witness: Witness;
  readonly quorum: number;
  readonly masters: number;
  /** Compares the clocks of this process at each reading. */
  readonly wallClock: WallClockWatch;
  /** Called once, when the lock is released, lost or passed on. */
  readonly ended: (lease: Lease) => void;
}

/** When an extension is due: `after` milliseconds after `since`, or up to `slack` milliseconds earlier. */
interface Due {
  readonly since: Instant;
  readonly after: number;
  readonly slack: number;
}

/** The extensions since the last one that succeeded. */
interface Renewal {
  /** The round under way. */
  round: Promise<Extension> | undefined;
  /** When to try again; `undefined` unless an extension has failed. */
  retry: Due | undefined;
  isInDanger: boolean;
}

/** The clocks of this process disagree whether time has passed. The lock is not held until the masters have answered. */
interface Doubt {
  /** Milliseconds by which the wall clock has moved further than the monotonic one. */
  lead: number;
  /** Number of times that it has. */
  times: number;
  resolved: Promise<void>;
}

/** What the masters know of a holder by its token, so that the next one needs another token. */
interface Personal {
  fencing?: FencingToken;
  state?: LockState;
}

/**
 * Keeps a lock alive while it is needed, and notifies its holder when it is lost.
 *
 * Whether the lock is held is computed from the clock on every read, so a stalled event loop cannot make an expired
 * lock appear to be held. One timer serves both the next extension and the end of the validity.
 */
export class Lease extends ListMember<Lease> {
  private began: Instant;
  private ttl: number;
  private timer: Timer | undefined;
  private controller: AbortController | undefined;
  /** Why it was lost, or its release; `undefined` while it is held. */
  private end: LockLostError | Promise<void> | undefined;
  /** Present from the beginning of an extension until one succeeds. */
  private renewal: Renewal | undefined;
  private personal: Personal | undefined;
  /** Whether work has begun under the lock. */
  isUsed = false;
  /** Absent without an observer, and before work has begun. */
  recorder: AcquisitionRecorder | undefined;
  private doubt: Doubt | undefined;
  /** The lead in milliseconds of a doubt that the masters did not resolve. */
  private unresolved = 0;

  readonly resources: readonly string[];
  /** Place in the wait queues of this process. */
  readonly entry: QueueEntry | undefined;
  private readonly quorumLock: LeasedKeys;
  private readonly call: CallSettings;
  private readonly tenure: Tenure | undefined;

  constructor(
    { resources, leasedKeys, call, entry, tenure }: AcquiredKeys,
    private readonly context: LeaseContext,
  ) {
    super();
    this.resources = resources;
    this.quorumLock = leasedKeys;
    this.call = call;
    this.entry = entry;
    this.tenure = tenure;
    this.began = tenure ? context.clock.read() : leasedKeys.validSince;
    this.ttl = call.ttl;
    this.arm();
  }

  /**
   * To be called in the same turn in which work begins: between a grant and its work, other work may block the process.
   * Returns `false` if the lock has ended. Nothing has relied on it, so that is not a loss.
   */
  begin(recorder: AcquisitionRecorder | undefined): boolean {
    // Protocol 4.10
    if (!this.isHeld) return false; // @mutant work-begun-without-a-look-at-the-clock
    this.isUsed = true;
    this.recorder = recorder;
    return true;
  }

  /** When it was acquired. */
  get acquiredAt(): Instant {
    return this.began;
  }

  /** The number of the permit; `undefined` for a lock. */
  get slot(): number | undefined {
    return this.quorumLock.slot;
  }

  /** The settings of the service. */
  get settings(): Settings {
    return this.context.settings;
  }

  /** Whether other shared holders may have the resources, too. */
  get isShared(): boolean {
    return this.call.isShared;
  }

  /** Aborts with a {@link LockLostError} when the lock is lost. */
  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.lost) this.controller.abort(this.lost);
    }
    return this.controller.signal;
  }

  /** Milliseconds for which the lock can still be relied on. Never negative. */
  get remaining(): number {
    return this.isOver || this.doubt ? 0 : this.remainingAt(this.context.clock.read());
  }

  /** Whether the lock is held. Reads the clock, and so detects an expiry even before a late timer does. */
  get isHeld(): boolean {
    return !this.isOver && this.isHeldAt(this.context.clock.read());
  }

  /** Whether the masters have to answer before the lock counts as held or lost. Reads the clock. */
  private isInDoubt(): boolean {
    return !this.isHeld && !this.isOver && this.doubt !== undefined;
  }

  /** Resolves when the masters have resolved a doubt; `undefined` if there is none. Reads the clock. */
  get pendingDoubt(): Promise<void> | undefined {
    return this.isInDoubt() ? this.doubt?.resolved : undefined;
  }

  /** Whether the lock has been released or lost. */
  get isOver(): boolean {
    return this.end !== undefined;
  }

  /** Whether the next waiter of this process has taken the lock. */
  get isPassedOn(): boolean {
    return this.end === PASSED_ON;
  }

  /** Why the lock was lost; `undefined` while it is held and after a release. */
  get loss(): LockLostError | undefined {
    return this.isHeld ? undefined : this.lost;
  }

  /** Renews the lock for `ttl` milliseconds, now and at every later extension. */
  async extend(ttl = this.ttl): Promise<void> {
    let permitted: number | undefined;
    // One round at a time: the answers of two rounds are indistinguishable. Another round may begin while the ttl is
    // announced to the masters.
    while (this.renewal?.round || permitted === undefined || this.isInDoubt()) {
      if (this.renewal?.round) {
        await this.renewal.round;
      } else if (this.isInDoubt()) {
        await this.doubt?.resolved;
      } else {
        const answer = this.context.witness.permit(ttl);
        permitted = typeof answer === 'number' ? answer : await answer;
      }
    }
    this.throwIfLost();
    const { extended, quorumCall } = await this.extendOnce(Math.min(ttl, permitted));
    // A round during which the clocks began to disagree may have failed for that reason only.
    if (!extended && this.isInDoubt()) return this.extend(ttl);
    await this.assertHeld();
    if (!extended) {
      const { quorum, masters } = this.context;
      throw new QuorumUnavailableError('extend the lock', this.resources, quorumCall.report, quorum, masters);
    }
  }

  /** The fencing token of the lock. Resolves when a quorum has agreed on it. */
  fencingToken(): Promise<number> {
    const { clock, random } = this.context;
    this.personal ??= {};
    this.personal.fencing ??= new FencingToken({
      ...{ leasedKeys: this.quorumLock, clock, random },
      longestPause: () => this.ttl * RETRY_AFTER,
      assertHeld: () => this.assertHeld(),
    });
    return this.personal.fencing.value;
  }

  /** What the holder leaves for the next one. */
  get state(): LockState {
    this.personal ??= {};
    return (this.personal.state ??= this.newState());
  }

  /**
   * Ends the validity this many milliseconds earlier, because the clock of this process stood still. To be followed by
   * {@link noteTime}, once all leases are shorter: what the loss of one causes may release another, which is passed on.
   */
  shorten(milliseconds: number): void {
    if (!this.isOver) this.quorumLock.shorten(milliseconds);
  }

  /** Checks the clock and rearms the timer, because time may have passed while no timer ran. */
  noteTime(): void {
    if (this.isHeld) this.arm();
  }

  /**
   * The wall clock has moved further than the monotonic one. It was set, or time has passed that the monotonic clock has
   * missed: the masters know whether the lock has lasted.
   */
  beginDoubt(lead: number): void {
    if (this.isOver) return;
    if (this.doubt) {
      this.doubt.lead += lead;
      this.doubt.times++;
      return;
    }
    this.timer?.cancel();
    const doubt: Doubt = { lead, times: 1, resolved: Promise.resolve() };
    this.doubt = doubt;
    doubt.resolved = this.resolve(doubt);
  }

  /** The wall clock was set back by this many milliseconds: what is measured from earlier readings would be too short. */
  noteSetBack(milliseconds: number): void {
    this.began = shiftWall(this.began, -milliseconds);
    this.quorumLock.noteSetBack(milliseconds);
  }

  /** Like {@link throwIfLost}, once the masters have resolved a doubt. */
  async assertHeld(): Promise<void> {
    if (this.isInDoubt()) await this.doubt?.resolved;
    this.throwIfLost();
  }

  throwIfLost(): void {
    if (this.isHeld) return;
    if (this.lost || !this.doubt) throw this.lost ?? new LockLostError(this.resources, 'released');
    const explanation = `${leadInWords(this.doubt.lead)}, and the masters have not answered yet`;
    throw new LockLostError(this.resources, 'expired', [], explanation);
  }

  /** Releases the lock. Idempotent; never rejects. */
  release(): Promise<void> {
    const now = this.context.clock.read();
    // Protocol 7.2
    // A loss that has not been detected yet must not be reported as a release.
    if (!this.isHeldAt(now)) {
      if (!this.isOver && this.doubt) return this.doubt.resolved.then(() => this.release());
      return this.end instanceof Promise ? this.end : Promise.resolve();
    }
    return this.passOn(now) ?? this.giveBack(now);
  }

  /** Ends the lock although its holder still relies on it. */
  lose(cause: LockLostCause, answers: readonly MasterReport[] = [], explanation?: string): void {
    if (this.isOver) return;
    const loss = new LockLostError(this.resources, cause, answers, explanation);
    this.end = loss;
    void this.giveBack(this.context.clock.read());
    if (!this.isUsed) return;
    this.controller?.abort(loss);
    this.context.observer.lockLost?.(loss);
  }

  private get lost(): LockLostError | undefined {
    return this.end instanceof LockLostError ? this.end : undefined;
  }

  private newState(): LockState {
    const { clock, random, masters } = this.context;
    const { stateAccess } = this.quorumLock;
    const register = stateAccess && new StateRegister({ ...stateAccess, clock, id: random.token() });
    return new LockState({ holder: this, clock, masters, register, masterTimeout: stateAccess?.masterTimeout ?? 0 });
  }

  /** Ends this lease without a release if the next waiter of this process takes the lock. */
  private passOn(now: Instant): Promise<void> | undefined {
    const { entry, call, quorumLock: leasedKeys, ttl } = this;
    // Protocol 5.2
    if (this.personal) return undefined; // @mutant lock-passed-on-with-its-token
    if (!entry || this.renewal?.round || call.minHold > 0 || call.isShared) return undefined;
    const { began, sections } = this.tenure ?? { began: this.began, sections: 1 };
    const lock = { leasedKeys, ttl, began, sections };
    if (!mayPassOn(lock, now) || !entry.passOn({ ...lock, sections: sections + 1 })) return undefined;
    this.end = PASSED_ON;
    this.close();
    return PASSED_ON;
  }

  private isHeldAt(now: Instant): boolean {
    if (this.isOver) return false;
    // Protocol 3.4
    this.context.wallClock.check(now); // @mutant clocks-not-compared
    if (this.doubt) {
      // Over by the monotonic clock alone: no answer can change that.
      if (this.quorumLock.remainingAt({ ...now, wall: -Infinity }) < TIMER_RESOLUTION) this.expire(now);
      return false;
    }
    // Protocol 3.3 and 6.4
    if (this.remainingAt(now) < TIMER_RESOLUTION) this.expire(now);
    return !this.isOver;
  }

  private remainingAt(now: Instant): number {
    return Math.max(0, Math.min(this.quorumLock.remainingAt(now), this.holdLeftAt(now)));
  }

  private holdLeftAt(now: Instant): number {
    // Protocol 6.5
    return this.call.maxHold - elapsedBetween(this.began, now);
  }

  private expire(now: Instant): void {
    if (this.holdLeftAt(now) < this.quorumLock.remainingAt(now)) {
      this.lose('max-hold');
      return;
    }
    const { lastReplies } = this.quorumLock;
    const isExplained = this.unresolved === 0 && lastReplies.length > 0;
    this.lose('expired', lastReplies, isExplained ? undefined : this.whyNotExtended);
  }

  /** Why the lock expired although no extension of it has failed. */
  private get whyNotExtended(): string {
    if (this.unresolved > 0)
      return `${leadInWords(this.unresolved)}, and a majority of the masters did not still have it`;
    return this.call.extend
      ? `this process was blocked or suspended, and did not extend it within its ttl of ${this.ttl} ms`
      : `it was not extended within its ttl of ${this.ttl} ms: pass \`extend: true\`, or a longer ttl`;
  }

  /** An extension has failed. */
  private noteFailure(renewal: Renewal): void {
    if (renewal.isInDanger) return;
    const { remaining } = this;
    if (remaining >= this.ttl * DANGER_BELOW) return;
    renewal.isInDanger = true;
    this.context.observer.lockInDanger?.(this.resources, remaining, this.quorumLock.lastReplies);
  }

  private giveBack(now: Instant): Promise<void> {
    const { minHold } = this.call;
    // Protocol 7.4
    const keepFor =
      minHold === 0 || !this.isUsed ? 0 : Math.max(0, Math.ceil(minHold - elapsedBetween(this.began, now)));
    const released = this.quorumLock.release(keepFor);
    if (this.tenure) this.entry?.noteServed(now);
    this.end ??= released;
    this.close();
    return released;
  }

  private close(): void {
    this.timer?.cancel(); // @mutant timer-of-a-lock-kept
    this.personal?.fencing?.end();
    this.recorder?.ended(this.lost);
    this.context.ended(this);
  }

  private arm(): void {
    this.timer?.cancel();
    const { clock, wallClock } = this.context;
    const now = clock.read();
    if (!this.isOver) wallClock.check(now);
    if (this.isOver || this.doubt) return;
    const remaining = this.remainingAt(now);
    const { next } = this;
    const isExtended = this.call.extend && !this.renewal?.round;
    const delay = isExtended ? Math.min(remaining, untilDue(next, now)) : remaining;
    // The timer for the end of the validity fires a little early and is then armed again. Most locks are released
    // before that, and the slack lets their timers share a due time.
    const slack = Math.floor(delay < remaining ? next.slack : delay * TIMER_SLACK);
    this.timer = clock.schedule(Math.max(0, Math.floor(delay)), this.tick.bind(this), slack).unref();
  }

  /** When the next extension is due. */
  private get next(): Due {
    const { ttl, renewal, quorumLock } = this;
    return renewal?.retry ?? { since: quorumLock.validSince, after: ttl * EXTEND_AFTER, slack: ttl * TIMER_SLACK };
  }

  private tick(): void {
    const now = this.context.clock.read();
    if (!this.isHeldAt(now)) return; // @mutant heal-after-the-deadline
    const { next } = this;
    const isDue = untilDue(next, now) < Math.floor(next.slack) + TIMER_RESOLUTION;
    if (this.call.extend && !this.renewal?.round && isDue) void this.extendAsAnnounced();
    else this.arm();
  }

  private async extendAsAnnounced(): Promise<void> {
    const permitted = this.context.witness.permit(this.ttl);
    await this.extendOnce(typeof permitted === 'number' ? Math.min(this.ttl, permitted) : this.ttl);
  }

  /** Asks the masters whether the lock has lasted. */
  private async resolve(doubt: Doubt): Promise<void> {
    const { quorumLock, call } = this;
    // The answers of two rounds are indistinguishable.
    await this.renewal?.round;
    let answer: Extension | undefined;
    for (let asked = 0, isNew = true; isNew && asked < MAX_QUESTIONS && !this.isOver; asked++) {
      const { times } = doubt;
      // What the masters know of the ttl may be out of date, if time has passed.
      await this.context.witness.permit(this.ttl);
      answer = await quorumLock.verify(call.extend ? this.ttl : undefined);
      isNew = times !== doubt.times || (answer?.quorumCall.outcome === 'granted' && !answer.extended);
    }
    this.doubt = undefined;
    if (this.isOver) return;
    if (answer?.extended) {
      this.renewal = undefined;
      this.unresolved = 0;
      this.began = shiftWall(this.began, doubt.lead);
    } else {
      this.unresolved = doubt.lead;
      if (this.isHeld && answer?.quorumCall.ownedByOther) this.lose('owner-changed', quorumLock.lastReplies);
    }
    this.noteTime();
  }

  private async extendOnce(ttl: number): Promise<Extension> {
    const renewal = (this.renewal ??= { round: undefined, retry: undefined, isInDanger: false });
    renewal.round = this.quorumLock.extend(ttl);
    this.arm();
    const { extended, quorumCall } = await renewal.round;
    renewal.round = undefined;
    if (this.isOver) return { extended: false, quorumCall };
    if (extended) {
      this.ttl = ttl;
      this.unresolved = 0;
      this.renewal = undefined;
    } else if (quorumCall.ownedByOther) {
      // Protocol 6.4
      this.lose('owner-changed', this.quorumLock.lastReplies);
    } else {
      const { clock, random } = this.context;
      // The shorter ttl counts: a refused change of the ttl leaves the validity of the previous ttl, or less.
      const bound = Math.min(ttl, this.ttl) * RETRY_AFTER;
      const after = bound * (1 + random.fraction()) * 0.5;
      renewal.retry = { since: clock.read(), after, slack: bound * TIMER_SLACK };
      this.noteFailure(renewal);
    }
    this.arm();
    return { extended, quorumCall };
  }
}

function untilDue({ since, after }: Due, now: Instant): number {
  return Math.floor(after) - elapsedBetween(since, now);
}

function leadInWords(milliseconds: number): string {
  const lead = Math.round(milliseconds);
  return `this process was suspended, or its wall clock was set forward, by ${lead} ms`;
}
