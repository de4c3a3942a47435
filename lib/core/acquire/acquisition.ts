import type { Instant } from '../clock.js';
import type { Blamed, Lines } from '../contention/contention.js';
import { showNames } from '../display.js';
import { type LockError, LockNotAcquiredError, majorityHolder, QuorumUnavailableError } from '../errors.js';
import type { HomeMasters } from './home-masters.js';
import { type QuorumCall, quorumOf } from './quorum-call.js';
import { type FailedAttempt, LastAnswers } from './last-answers.js';
import { Lease, type LeaseContext } from '../lease.js';
import { CompositeLock } from './composite-lock.js';
import { failureOf, RetrySchedule, type Step, stepAfter, transitionAfter } from './transitions.js';
import type { Random, TokenSource } from '../holder.js';
import { type CallSettings, EXPIRY_RESOLUTION, masterTimeoutFor } from '../settings/settings.js';
import type { LeasedKeys, PassedLock } from './leased-keys.js';
import { type AcquireAttempt, QuorumLock, type QuorumLockContext } from './quorum-lock.js';
import type { KeyNames } from '../keyspace.js';
import type { QueueEntry } from './process-queue.js';
import type { PermitChoice } from './permits.js';
import { RemoteWait } from './remote-wait.js';
import type { Waiter } from './waiter.js';
import type { CircuitBreakerMaster } from '../health/circuit-breaker-master.js';

// An acquisition of several resources that was notified in vain takes them one by one after this many milliseconds.
const PATIENCE = 1_000;
// The same after this many notifications in vain: acquisitions that each have a reservation that another one needs
// would otherwise hand them round as fast as the masters answer.
const MAX_FUTILE_WAKEUPS = 100;
// Ends the acquisition of one of several resources.
const PASSED = new Error('a nested call, for which its call waits, has gone ahead of it');

export interface AcquisitionContext extends QuorumLockContext {
  readonly masters: readonly CircuitBreakerMaster[];
  readonly homeMasters: HomeMasters;
  readonly random: Random;
  readonly tokens: TokenSource;
  // The end of errors about masters that cannot vote.
  readonly advice?: string | undefined;
  // The name under which this process listens for notifications.
  readonly listener: string;
  readonly leases: LeaseContext;
  readonly lines: Lines;
  // The instance of this process, if it has an exclusive lock on the resource.
  readonly ownHolderOf: (resource: string) => string | undefined;
  // Without a key: notifications may have been lost.
  readonly notified: (master: CircuitBreakerMaster, key: string | undefined) => void;
}

interface Attempt extends AcquireAttempt {
  readonly quorumLock: QuorumLock;
  readonly step: Step;
  readonly home: CircuitBreakerMaster | undefined;
  // The waiting budget has not shortened the timeout.
  readonly isFull: boolean;
}

interface AcquisitionRequest {
  // The one of several resources that it takes; absent if it takes all.
  readonly part?: string | undefined;
  // Default: that of the waiter.
  readonly call?: CallSettings;
  readonly waiter: Waiter;
  // `undefined` if no other call of this process wants the same resources.
  readonly entry: QueueEntry | undefined;
  // Absent for locks.
  readonly permits?: PermitChoice | undefined;
  // The same call was granted a lock that ended before it could be used.
  readonly isRepeated?: boolean;
}

// From the first attempt until it is granted or its waiting budget ends. The first attempt contacts all masters at
// once, unless the keys are known to be contended. If refused, it enqueues on the home master of the first key: it
// contacts that one first and the others only after it has granted, and otherwise waits there to be notified.
export class Acquisition {
  attempts = 0;
  private refusal: LastAnswers | undefined;
  private schedule: RetrySchedule | undefined;
  // The lock that its previous holder in this process has passed on: then there was no attempt.
  passed: PassedLock | undefined;
  // While it waits, each notification but the last was in vain.
  private notifications = 0;

  // Its ttl and `minHold` are cut to the largest ttl that all masters know.
  call: CallSettings;
  private readonly resources: readonly string[];
  private readonly taken: readonly string[];
  private readonly names: KeyNames;
  private readonly keys: readonly string[];
  private readonly waiter: Waiter;
  private readonly entry: QueueEntry | undefined;
  // Others of this process were before it when it began.
  private readonly isBehind: boolean;
  private readonly permits: PermitChoice | undefined;
  private readonly isRepeated: boolean;
  // Absent until it has asked a home master or was refused.
  private joined: RemoteWait | undefined;

  constructor(
    private readonly context: AcquisitionContext,
    { part, waiter, call = waiter.call, entry, permits, isRepeated = false }: AcquisitionRequest,
  ) {
    const { resources } = waiter;
    this.resources = resources;
    this.taken = part === undefined ? resources : [part];
    this.names = permits?.all ?? context.keyspace.namesOf(this.taken);
    this.keys = this.names.keys;
    this.call = call;
    this.waiter = waiter;
    this.entry = entry;
    this.isBehind = entry !== undefined && !entry.isAdmitted;
    this.permits = permits;
    this.isRepeated = isRepeated;
    const isPlain = !call.isShared && call.minHold === 0 && resources.length === 1;
    if (entry && isPlain) waiter.takesTtl = call.ttl;
  }

  get isHeldByOther(): boolean {
    const refusal = this.refusal ?? this.entry?.refusal;
    return refusal ? refusal.isHeld : this.entry !== undefined && !this.entry.isAdmitted;
  }

  // `first` is given if the waiter has made attempts before.
  async run(first?: Step): Promise<LeasedKeys> {
    const { waiter, entry, call: wanted, isBehind, isRepeated } = this;
    const { clock } = this.context;
    if (isBehind && this.mayTakeRemoteWait) waiter.takesRemoteWait = (remoteWait) => this.takeRemoteWait(remoteWait);
    let leasedKeys: LeasedKeys | undefined;
    try {
      let step = first;
      for (let attempt = 1; ; attempt++) {
        while (entry && !entry.isAdmitted && !waiter.isOver) await waiter.pause(undefined, this.watch);
        waiter.check();
        if (first !== undefined && this.isPassed) throw PASSED; // @mutant parts-kept-from-a-nested-call
        this.passed = waiter.takeOffered();
        if (this.passed) return (leasedKeys = this.passed.leasedKeys);
        // An acquisition that finds no other ahead of it makes one full attempt, however small its budget.
        const hasOthersAhead = first !== undefined || isBehind || isRepeated;
        // Protocol 5.1
        const isGuaranteed = !hasOthersAhead && (attempt === 1 || (this.permits?.isFirstTry ?? false));
        if (!isGuaranteed && waiter.isOver) throw await this.failure();

        // Nothing has been awaited before a first attempt with no other ahead.
        const now = attempt === 1 && !hasOthersAhead ? waiter.since : clock.read();
        const permitted = this.permittedFor(wanted, now);
        const isKnown = typeof permitted === 'number';
        const ttl = isKnown ? permitted : await waiter.unlessOver(permitted, isGuaranteed);
        if (!isKnown) waiter.check();
        if (ttl === undefined) throw await this.failure();
        this.call = cutTo(ttl, wanted);
        this.attempts = attempt;
        const current = this.beginAttempt(step ?? this.firstStep, isGuaranteed, isKnown ? now : clock.read());
        const { quorumLock } = current;
        const quorumCall = await this.contact(current);
        // Protocol 4.4
        const isTaken =
          quorumCall.outcome === 'granted' &&
          // The clocks of this process disagree, or the masters were late.
          (quorumLock.remaining > 0 || (await quorumLock.verify())?.extended === true);
        if (this.mayKeep(current, quorumCall, isTaken)) return (leasedKeys = quorumLock);
        leasedKeys = this.isStarved ? await this.acquireOneByOne() : undefined;
        if (leasedKeys) return leasedKeys;
        step = await this.nextStep(current.step, quorumCall);
      }
    } finally {
      this.end(leasedKeys !== undefined);
    }
  }

  // Asked before each attempt and not once when waiting begins, so that the announcement is recent when the lock is
  // granted. In milliseconds: the largest ttl that all masters know.
  private permittedFor({ ttl, minHold }: CallSettings, now?: Instant): number | Promise<number> {
    return this.context.witness.announceTtl(Math.max(ttl, minHold), now);
  }

  private get firstStep(): Step {
    const { homeMasters } = this.context;
    const isForgotten = this.isBehind && homeMasters.contentionMayHaveExpired(this.waiter.waited);
    const isContended = isForgotten || this.joined !== undefined || homeMasters.areContended(this.keys);
    return this.call.wait > 0 && isContended ? 'home' : 'all';
  }

  private get mayTakeRemoteWait(): boolean {
    return !this.permits && !this.call.isShared && this.resources.length === 1;
  }

  private beginAttempt(step: Step, isGuaranteed: boolean, since: Instant): Attempt {
    const { waiter, call, context } = this;
    const full = masterTimeoutFor(context.settings, call.ttl);
    const timeout = isGuaranteed ? full : Math.min(full, waiter.left);
    const home = context.homeMasters.of(this.keys[0] as string);
    // Of permits, the home master selects one, if it is asked first.
    const permit = !home || step === 'all' ? this.permits?.guess() : this.permits?.all;
    const quorumLock = this.newQuorumLock(home, permit);
    waiter.interrupt = quorumLock;
    const waited = this.waitedAt(since);
    const stoodStill = context.standstill.total;
    const names = this.permits ? undefined : this.names;
    const isFull = timeout === full;
    return { quorumLock, step, home, ttl: call.ttl, timeout, isFull, since, stoodStill, waited, names };
  }

  // If false, what the attempt acquired is being released.
  private mayKeep(attempt: Attempt, quorumCall: QuorumCall, isTaken: boolean): boolean {
    const { quorumLock, step, home, timeout, isFull, since } = attempt;
    const { waiter } = this;
    waiter.interrupt = undefined;
    if (step !== 'all') this.joined?.noteReply(home, quorumCall);
    if (isTaken && !waiter.isStopped) {
      this.permits?.keep();
      return true;
    }
    // There is nothing to release if the home master alone was contacted and refused.
    const wasAlone = home !== undefined && step === 'home';
    // Protocol 4.5
    if (!wasAlone || failureOf(quorumCall) !== 'refused') void quorumLock.release(0);
    waiter.check();
    // An attempt that the deadline cut short is less informative than the previous one.
    const isTelling = quorumCall.outcome === 'held' && !quorumCall.isUncertain;
    if (isTelling || isFull) this.note({ quorumCall, since, timeout });
    return false;
  }

  private end(isGranted: boolean): void {
    this.waiter.takesRemoteWait = undefined;
    // It was passed on while this acquisition was stopped.
    const unused = this.waiter.takeOffered();
    if (unused) {
      void unused.leasedKeys.release(0);
      this.permits?.free(unused.leasedKeys.slot);
      this.entry?.recordTurn(this.context.clock.read());
    }
    if (isGranted) this.joined?.leave();
    else this.passRemoteWait();
    this.permits?.giveBack();
  }

  // Others acquire again and again before this acquisition, because one of its resources is always held.
  private get isStarved(): boolean {
    const { notifications, joined, keys, permits, waiter } = this;
    const isContended = notifications > 0 || joined?.hasSharedHolders === true;
    if (keys.length === 1 || permits || !isContended || this.isPassed) return false;
    // Protocol 4.9
    return notifications > MAX_FUTILE_WAKEUPS || waiter.waited >= PATIENCE;
  }

  private get isPassed(): boolean {
    return this.entry?.isNext === false;
  }

  // While it waits for the next one, it keeps those that it has. The order is sorted, so that two such acquisitions
  // cannot deadlock, and a nested call that needs one of them gets it: `undefined`.
  private async acquireOneByOne(): Promise<LeasedKeys | undefined> {
    const { context, resources, call, waiter, entry } = this;
    const leasedKeys = new CompositeLock();
    let lease: Lease | undefined;
    // A notification could not be used while the keys are collected one by one. The place in this process is kept.
    this.joined?.leave();
    try {
      for (const part of [...resources].sort()) {
        const acquisition = new Acquisition(context, { part, call, waiter, entry });
        leasedKeys.add(await acquisition.run('home'));
        if (acquisition.call.ttl < this.call.ttl) this.call = acquisition.call;
        lease ??= this.leaseOf(leasedKeys);
      }
      // The masters may permit less by now than when the first part was acquired.
      const permitted = await waiter.unlessOver(Promise.resolve(this.permittedFor(call)), true);
      waiter.check();
      waiter.interrupt = leasedKeys;
      const isKept = await lease?.detach();
      waiter.check();
      const isWhole = isKept && permitted && (await leasedKeys.extend(cutTo(permitted, call).ttl)).extended;
      waiter.interrupt = undefined;
      waiter.check();
      if (isWhole && leasedKeys.remaining > 0) return leasedKeys;
    } catch (error) {
      void lease?.detach();
      void leasedKeys.release(0);
      if (error === PASSED) return undefined;
      throw error;
    }
    void leasedKeys.release(0);
    return undefined;
  }

  // Keeps the parts that are acquired alive until the rest are acquired, too. It is not a lock yet, and has no observer.
  private leaseOf(leasedKeys: LeasedKeys): Lease {
    const { resources } = this;
    const call = Object.assign({}, this.call, { extend: true, minHold: 0 });
    const unobserved = Object.assign({}, this.context.leases, { observer: {}, ended: () => undefined });
    const lease = new Lease({ resources, leasedKeys, call }, unobserved);
    lease.begin(undefined);
    return lease;
  }

  private contact(attempt: Attempt): Promise<QuorumCall> {
    const { permits } = this;
    const { quorumLock, step, home, waited } = attempt;
    if (!home || step === 'all') return quorumLock.acquire(attempt);
    // Without a waiting budget, the first try of permits asks a home master, too.
    if (permits) {
      const ticket = this.call.wait > 0 ? this.remoteWait.join(home, waited) : undefined;
      return quorumLock.acquireOneOf(attempt, { permits, home, ticket });
    }
    const ticket = this.remoteWait.join(home, waited);
    return step === 'reservation'
      ? quorumLock.acquireReserved(attempt, { home, ticket })
      : quorumLock.acquireThrough(attempt, { home, ticket });
  }

  private async nextStep(step: Step, quorumCall: QuorumCall): Promise<Step> {
    const { retries, keys } = this;
    const failure = failureOf(quorumCall);
    this.entry?.noteRefusal();
    if (this.permits?.triesAnother(step, failure)) return 'home';
    if (!this.call.isShared && !this.permits && !this.waiter.isOver) {
      this.remoteWait.deferShared(quorumCall, this.waited);
    }
    const { schedule, next } = transitionAfter(step, failure, retries.isFailing);
    if (schedule === 'refusal') retries.noteRefusal();
    if (schedule === 'failure') retries.noteFailure();
    if (next !== 'pause') return next;
    this.permits?.beginAnew();
    const { homeMasters } = this.context;
    const notifies = homeMasters.notifies(homeMasters.of(keys[0] as string));
    // The first one that is refused polls for all of this process, and those behind it are woken when it is granted.
    const isNext = this.entry?.isNext ?? true;
    // Protocol 5.5
    const poll = isNext ? retries.delay(notifies) : Infinity;
    const freeAfter = isNext ? quorumCall.freeAfter : undefined;
    const expiry = freeAfter === undefined ? Infinity : freeAfter + EXPIRY_RESOLUTION;
    const reason = await this.waiter.pause(Math.min(poll, expiry), this.watch); // @mutant notification-trusted-without-the-timer
    if (reason === 'next') this.notifications++;
    if (reason) retries.noteNotification();
    else retries.noteQuiet();
    const [hasOneKey, isWide] = [keys.length === 1, retries.isWide(notifies)];
    return stepAfter({ step, failure, reason, hasOneKey, expiry, poll, isWide });
  }

  // Permits have several holders, and none of them is named.
  private get watch(): (() => () => Blamed) | undefined {
    if (this.permits) return undefined;
    const { lines, ownHolderOf } = this.context;
    return () => lines.wait(this.resources, (resource) => holderIn(this.entry?.refusal) ?? ownHolderOf(resource));
  }

  private get remoteWait(): RemoteWait {
    if (!this.joined) {
      const { names, permits, call, context } = this;
      const { masters, listener, notified } = context;
      const hasOneQueue = permits !== undefined;
      this.joined = new RemoteWait({ masters, names, listener, notified, isShared: call.isShared, hasOneQueue });
    }
    return this.joined;
  }

  // Milliseconds, for its place among the acquisitions of all processes.
  private get waited(): number {
    return this.waitedAt(this.context.clock.read());
  }

  private waitedAt(now: Instant): number {
    // Processes take turns: after several sections in a row, this one waits as if its waiters had come only then.
    const sinceServed = this.entry?.sinceServed(now) ?? Infinity;
    return Math.floor(Math.min(now.monotonic - this.waiter.since.monotonic, sinceServed));
  }

  private get retries(): RetrySchedule {
    return (this.schedule ??= new RetrySchedule(this.context.random));
  }

  // The next waiter of this process goes on in the place of this one, if one can.
  private passRemoteWait(): void {
    const { joined, entry, permits, call } = this;
    // Protocol 5.7
    const isTaken = joined && !permits && !call.isShared && entry?.passRemoteWait(joined);
    if (isTaken) this.joined = undefined;
    else joined?.leave();
  }

  // So that no later request of another process passes this one.
  private takeRemoteWait(remoteWait: RemoteWait): boolean {
    // It contends already.
    if (this.joined) return false;
    this.joined = remoteWait;
    remoteWait.passTo(this.waited);
    return true;
  }

  private note(attempt: FailedAttempt): void {
    this.refusal = new LastAnswers(this.context.masters, attempt, this.refusal ?? this.entry?.refusal);
    if (this.entry) this.entry.refusal = this.refusal;
    if (!this.permits) this.context.lines.note(this.resources, holderIn(this.refusal));
    this.call.refused?.(attempt.quorumCall.report);
  }

  private async failure(): Promise<LockError> {
    const { waiter } = this;
    const refusal = this.refusal ?? this.entry?.refusal;
    // This acquisition takes nothing any more: a release in the meantime must wake the next process.
    this.passRemoteWait();
    // The next one asks in its place, also while the last answers are awaited.
    this.entry?.leave();
    await refusal?.settle(this.context.clock, (giveUp) => (waiter.interrupt = { giveUp }));
    waiter.interrupt = undefined;
    waiter.check();
    return this.errorFor(refusal);
  }

  // Without a refusal, it made no attempt, because others of its process were before it, or because it was granted a
  // lock that had ended before it could be used.
  private errorFor(refusal: LastAnswers | undefined): LockError {
    const { resources, call, isRepeated } = this;
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
      return new LockNotAcquiredError(resources, refusal?.report ?? [], call.wait, refusal?.freeAfter, call.permits);
    }
    return unavailable(`lock ${names}${refusal.outcome === 'granted' ? ' before its validity has ended' : ''}`);
  }

  private newQuorumLock(home: CircuitBreakerMaster | undefined, permit: KeyNames | undefined): QuorumLock {
    const { context, taken } = this;
    // Protocol 4.5
    const token = context.tokens.next(this.waiter.since.wall); // @mutant token-reused-across-attempts
    const { isShared } = this.call;
    return new QuorumLock(context, { resources: taken, permit, isShared, token, home });
  }
}

// `undefined` if no holder was named.
function holderIn(refusal: LastAnswers | undefined): string | undefined {
  return refusal?.isHeld ? majorityHolder(refusal.report)?.instance : undefined;
}

function cutTo(ttl: number, call: CallSettings): CallSettings {
  if (ttl >= call.ttl && ttl >= call.minHold) return call;
  return { ...call, ttl: Math.min(call.ttl, ttl), minHold: Math.min(call.minHold, ttl) };
}
