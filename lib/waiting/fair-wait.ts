import type { Clock, Instant } from '../redlock/clock.js';
import { type LockError, QuorumUnavailableError } from '../redlock/errors.js';
import type { LockHolder, Random } from '../redlock/holder.js';
import { showNames } from '../redlock/names.js';
import type { First, Plan } from '../redlock/round.js';
import { type QuorumCall, quorumOf } from '../redlock/quorum.js';
import { EXPIRY_RESOLUTION, masterTimeoutFor } from '../redlock/validity.js';
import type { Reply } from '../redlock/server.js';
import type { PassedLock } from '../redlock/terms.js';
import type { Waiting } from '../redlock/waiting.js';
import { ExclusiveKeys } from '../kinds/exclusive.js';
import type { Kind } from '../kinds/kind.js';
import { type PermitChoice, PermitKey } from '../kinds/permits.js';
import { SharedKeys } from '../kinds/shared.js';
import type { CircuitBreakerMaster } from '../masters/circuit-breaker-master.js';
import { reopened } from '../masters/connect.js';
import type { GrantedReply } from '../masters/master.interface.js';
import type { LockObserver, WakeCause } from '../operate/observer.js';
import type { KeyNames, Keyspace } from '../settings/keyspace.js';
import type { CallSettings, Settings } from '../settings/settings.js';
import { askReserved } from './hand-off-reservation.js';
import type { HomeMasters } from './home-masters.js';
import { LastAnswers } from './last-answers.js';
import { LockNotAcquiredError, majorityHolder, type OwnHolder } from './lock-not-acquired.error.js';
import type { QueueEntry } from './process-queue.js';
import { RemoteWait } from './remote-wait.js';
import { failureOf, RETRY_WITHIN, RetrySchedule, type Step, stepAfter, transitionAfter } from './transitions.js';
import type { Waiter } from './waiter.js';

// The same for all calls of one process.
export interface WaitContext {
  readonly masters: readonly CircuitBreakerMaster[];
  readonly homeMasters: HomeMasters;
  readonly keyspace: Keyspace;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: LockObserver;
  // The end of errors about masters that cannot vote.
  readonly advice: string | undefined;
  // The name under which this process listens for notifications.
  readonly listener: string;
  // Of this process, for the error of a call that has asked no master.
  readonly ownHolder: (resources: readonly string[], call: CallSettings) => OwnHolder | undefined;
  // Without a key: notifications may have been lost.
  readonly notified: (master: CircuitBreakerMaster, key: string | undefined) => void;
}

interface WaitRequest {
  readonly waiter: Waiter;
  // `undefined` if no other call of this process wants the same resources.
  readonly entry: QueueEntry | undefined;
  // Absent for locks.
  readonly permits?: PermitChoice | undefined;
  // The same call was granted a lock that ended before it could be used.
  readonly isRepeated: boolean;
}

interface Attempt extends Plan {
  readonly primitive: Kind;
  readonly step: Step;
  readonly home: CircuitBreakerMaster | undefined;
  // The waiting budget has not shortened the timeout.
  readonly isFull: boolean;
}

// From the first attempt until one is granted or the budget ends. The first attempt asks all masters at once, unless the
// keys are known to be contended. If refused, the call joins a queue at the home master of the first key: it asks that one
// first, and the others only after it has granted, and otherwise waits there to be notified.
export class FairWait implements Waiting {
  attempts = 0;
  private refusal: LastAnswers | undefined;
  private schedule: RetrySchedule | undefined;
  // Of several keys: each but the last was in vain.
  private notifications = 0;
  private attempt: Attempt | undefined;
  private step: Step | undefined;
  // The first attempt has asked no other master yet.
  private isHomeSilent = false;
  // Absent until it has asked a home master or was refused.
  private joined: RemoteWait | undefined;

  private readonly names: KeyNames;
  private readonly waiter: Waiter;
  private readonly entry: QueueEntry | undefined;
  // Others of this process were before it when it began.
  private readonly isBehind: boolean;
  private readonly permits: PermitChoice | undefined;
  private readonly isRepeated: boolean;

  constructor(
    private readonly context: WaitContext,
    { waiter, entry, permits, isRepeated }: WaitRequest,
  ) {
    this.names = permits?.all ?? context.keyspace.namesOf(waiter.resources);
    this.waiter = waiter;
    this.entry = entry;
    this.isBehind = entry !== undefined && !entry.isAdmitted;
    this.permits = permits;
    this.isRepeated = isRepeated;
  }

  get isHeldByOther(): boolean {
    const refusal = this.lastAnswers;
    return refusal ? refusal.isHeld : this.entry !== undefined && !this.entry.isAdmitted;
  }

  // Nothing is awaited before a first attempt with no other ahead, which is made however small the budget is.
  // Protocol 5.1
  plan(attempt: number): Plan | Promise<Plan | PassedLock | undefined> {
    if (attempt > 1 || this.isBehind || this.isRepeated) return this.planLater(attempt);
    this.waiter.check();
    const opened = this.reopened();
    return opened ? this.planAfter(opened, attempt) : this.begin(attempt, true, this.waiter.since);
  }

  note(quorumCall: QuorumCall, isTaken: boolean): void {
    const { attempt } = this;
    if (attempt?.home && attempt.step !== 'all') this.joined?.noteReply(attempt.home, quorumCall);
    if (isTaken) this.permits?.keep();
  }

  async pause(quorumCall: QuorumCall): Promise<void> {
    const { attempt } = this;
    if (!attempt) return;
    // An attempt that the deadline cut short is less informative than the previous one.
    const isTelling = quorumCall.outcome === 'held' && !quorumCall.isUncertain;
    if (isTelling || attempt.isFull) this.noteRefusal(quorumCall);
    this.step = await this.nextStep(attempt.step, quorumCall);
    const { masters } = this.context;
    const hasAskedAll = masters.every((master) => quorumCall.hasAsked(master));
    this.isHomeSilent = this.attempts === 1 && quorumCall.outcome === 'unavailable' && !hasAskedAll;
  }

  async failure(): Promise<LockError> {
    const { waiter } = this;
    const refusal = this.lastAnswers;
    // This acquisition takes nothing any more: a release in the meantime must wake the next process.
    this.joined?.leave();
    // The next one asks, also while the last answers are awaited.
    this.entry?.leave();
    await refusal?.settle(this.context.clock, (giveUp) => (waiter.interrupt = { giveUp }));
    waiter.interrupt = undefined;
    waiter.check();
    return this.errorFor(refusal);
  }

  end(): void {
    this.joined?.leave();
    this.permits?.giveBack();
    // It was stopped in the turn in which it got the lock.
    const { passed } = this.waiter;
    if (passed) passed.ending = passed.mutex.release(0, undefined, passed.tellLoss);
  }

  private async planLater(attempt: number): Promise<Plan | PassedLock | undefined> {
    const { waiter, entry } = this;
    while (entry && !entry.isAdmitted && !waiter.isOver) await this.rest();
    const { passed } = waiter;
    waiter.passed = undefined;
    if (passed) return passed;
    waiter.check();
    // The first attempt goes on: its home master was silent, or another permit may be free.
    const goesOn = this.isHomeSilent || (this.permits?.isFirstTry ?? false);
    const isGuaranteed = goesOn && !this.isBehind && !this.isRepeated;
    if (!isGuaranteed && waiter.isOver) return undefined;
    const opened = isGuaranteed ? this.reopened() : undefined;
    return opened ? this.planAfter(opened, attempt) : this.begin(attempt, isGuaranteed, this.context.clock.read());
  }

  private async planAfter(opened: Promise<void>, attempt: number): Promise<Plan> {
    await opened;
    this.waiter.interrupt = undefined;
    this.waiter.check();
    return this.begin(attempt, true, this.context.clock.read());
  }

  private reopened(): Promise<void> | undefined {
    const { context, waiter } = this;
    const { masters, clock, settings } = context;
    const timeout = masterTimeoutFor(settings, waiter.call.ttl);
    return reopened({ masters, clock, timeout, cancelled: (giveUp) => (waiter.interrupt = { giveUp }) });
  }

  private begin(number: number, isGuaranteed: boolean, since: Instant): Plan {
    const { waiter, context, permits } = this;
    this.attempts = number;
    const { ttl } = waiter.call;
    const full = masterTimeoutFor(context.settings, ttl);
    const timeout = isGuaranteed ? full : Math.min(full, waiter.left);
    const home = context.homeMasters.of(this.firstKey);
    const step = this.step ?? this.firstStep;
    const isAlone = !home || step === 'all';
    // Of permits, the home master selects one, if it is asked first.
    const permit = permits && (isAlone ? permits.claimFirst() : permits.all);
    const kind = permit ? new PermitKey(permit) : this.keys();
    const first = isAlone ? undefined : this.first(home, kind, step, since);
    const attempt: Attempt = {
      primitive: kind,
      since,
      timeout,
      first,
      last: home,
      step,
      home,
      isFull: timeout === full,
    };
    this.attempt = attempt;
    return attempt;
  }

  private keys(): Kind {
    const { keyspace } = this.context;
    const { resources, call, since } = this.waiter;
    return call.isShared ? new SharedKeys(keyspace, resources, since) : new ExclusiveKeys(keyspace, resources);
  }

  private get firstKey(): string {
    return this.names.keys[0] as string;
  }

  private get firstStep(): Step {
    const { homeMasters } = this.context;
    const isForgotten = this.isBehind && homeMasters.contentionMayHaveExpired(this.waiter.waited);
    const isContended = isForgotten || this.joined !== undefined || homeMasters.areContended(this.names.keys);
    return isContended ? 'home' : 'all';
  }

  private first(home: CircuitBreakerMaster, kind: Kind, step: Step, since: Instant): First {
    const { permits } = this;
    const { ttl, wait } = this.waiter.call;
    // Without a waiting budget, it does not queue.
    const ticket = wait > 0 ? this.remoteWait.join(home, this.waitedAt(since)) : undefined;
    if (permits && kind instanceof PermitKey) {
      const { order } = permits;
      const granted = (answer: Reply): void =>
        kind.choose(permits.namesOf, order[(answer as GrantedReply).picked ?? -1]);
      return { master: home, request: (token) => kind.pick(order, token, ttl, since, ticket), granted };
    }
    const together = step === 'reservation' && ticket ? askReserved(home) : undefined;
    return { master: home, request: (token) => kind.acquireOrQueue(token, ttl, since, ticket), together };
  }

  private async nextStep(step: Step, quorumCall: QuorumCall): Promise<Step> {
    const { retries, names, waiter } = this;
    const { keys } = names;
    const failure = failureOf(quorumCall);
    this.entry?.noteRefusal();
    if (this.permits?.triesAnother(step, failure)) return 'home';
    if (!waiter.call.isShared && !this.permits && !waiter.isOver) {
      this.remoteWait.deferShared(quorumCall, this.waitedAt(this.context.clock.read()));
    }
    const { schedule, next } = transitionAfter(step, failure, retries.isFailing);
    if (schedule === 'refusal') retries.noteRefusal();
    if (schedule === 'failure') retries.noteFailure();
    if (next !== 'pause') return next;
    this.permits?.beginAnew();
    const { homeMasters } = this.context;
    const notifies = homeMasters.notifies(homeMasters.of(this.firstKey));
    // The first one that is refused polls for all of this process, and those behind it are woken when it is granted.
    const isNext = this.entry?.isNext ?? true;
    // Protocol 5.5
    const poll = isNext ? retries.delay(notifies) : Infinity;
    const freeAfter = isNext ? quorumCall.freeAfter : undefined;
    const expiry = freeAfter === undefined ? Infinity : freeAfter + EXPIRY_RESOLUTION;
    const cause = await this.rest(Math.min(poll, expiry)); // @mutant notification-trusted-without-the-timer
    if (cause === 'reserved' && keys.length > 1 && ++this.notifications > 1) await this.giveWay();
    if (cause) retries.noteNotification();
    else retries.noteQuiet();
    const [hasOneKey, isWide] = [keys.length === 1, retries.isWide(notifies)];
    return stepAfter({ step, failure, cause, hasOneKey, expiry, poll, isWide });
  }

  // Several calls that each have a reservation which another one needs would hand them round as fast as the masters
  // answer.
  // Protocol 4.9
  private async giveWay(): Promise<void> {
    const { waiter, context } = this;
    const end = waiter.waited + context.random.fraction() * RETRY_WITHIN;
    while (waiter.waited < end && !waiter.isOver) await waiter.pause(end - waiter.waited);
  }

  private rest(delay?: number): Promise<WakeCause | undefined> {
    const { waiter } = this;
    const { observer } = this.context;
    if (observer.waiting && !waiter.call.listener && !waiter.isReported && !waiter.isOver) {
      waiter.isReported = true;
      observer.waiting(waiter.resources, this.holder);
    }
    return waiter.pause(delay);
  }

  // Permits have several holders, and none of them is named.
  private get holder(): LockHolder | undefined {
    const refusal = this.lastAnswers;
    return !this.permits && refusal?.isHeld ? majorityHolder(refusal.report) : undefined;
  }

  private get lastAnswers(): LastAnswers | undefined {
    return this.refusal ?? this.entry?.refusal;
  }

  private get remoteWait(): RemoteWait {
    if (!this.joined) {
      const { names, permits, waiter, context } = this;
      const { masters, listener, notified } = context;
      const { isShared } = waiter.call;
      const hasOneQueue = permits !== undefined;
      this.joined = new RemoteWait({ masters, names, listener, notified, isShared, hasOneQueue });
    }
    return this.joined;
  }

  // Milliseconds, for its turn among the acquisitions of all processes.
  private waitedAt(now: Instant): number {
    return Math.floor(now.monotonic - this.waiter.since.monotonic);
  }

  private get retries(): RetrySchedule {
    return (this.schedule ??= new RetrySchedule(this.context.random));
  }

  private noteRefusal(attempt: QuorumCall): void {
    this.refusal = new LastAnswers(this.context.masters, attempt, this.lastAnswers);
    if (this.entry) this.entry.refusal = this.refusal;
    this.waiter.call.refused?.(majorityHolder(attempt.report));
  }

  // Without a refusal, it made no attempt, because others of its process were before it, or because it was granted a
  // lock that had ended before it could be used.
  private errorFor(refusal: LastAnswers | undefined): LockError {
    const { isRepeated } = this;
    const { resources, call } = this.waiter;
    const { masters, advice } = this.context;
    const unavailable = (intent: string, why = advice): LockError =>
      new QuorumUnavailableError(
        intent,
        resources,
        refusal?.report ?? [],
        quorumOf(masters.length),
        masters.length,
        why,
      );
    const names = showNames(resources);
    if (!refusal && isRepeated) {
      const why =
        `They did, and this process was blocked until the lock of ${call.ttl} ms had ended, so nothing ran: ` +
        'keep synchronous work short, or pass a longer ttl or `wait`';
      return unavailable(`begin under the lock on ${names} before its validity has ended`, why);
    }
    if (!refusal || refusal.isHeld) {
      const own = refusal ? undefined : this.context.ownHolder(resources, call);
      const freeAfter = refusal ? refusal.freeAfter : own?.freeAfter;
      return new LockNotAcquiredError(resources, refusal?.report ?? [], call.wait, freeAfter, call.permits, own);
    }
    return unavailable(`lock ${names}${refusal.outcome === 'granted' ? ' before its validity has ended' : ''}`);
  }
}
