import type { Clock, Timer } from './clock.js';
import { type LockError, LockNotAcquiredError, QuorumUnavailableError } from './errors.js';
import type { Gates } from './gates.js';
import { type Ballot, quorumOf } from './quorum.js';
import { type FailedAttempt, Refusal } from './refusal.js';
import { Collection } from './collection.js';
import { Looks } from './looks.js';
import type { Random } from './random.js';
import { type CallSettings, masterTimeoutFor, type Settings } from './settings.js';
import { showNames } from './shown.js';
import type { Holding } from './holding.interface.js';
import { eachOf, type KeyNames } from './key-names.js';
import { Tenure } from './tenure.js';
import type { Place } from './wait-queue.js';
import type { Waiter } from './waiter.js';
import type { WatchedMaster } from './watched-master.js';
import type { Witness } from './witness.interface.js';

/** Milliseconds to wait beyond an expiry: masters set keys one after the other, and expire them to the millisecond. */
const EXPIRY_RESOLUTION = 2;

/** An acquisition of several resources that is passed over for this many milliseconds takes them one by one. */
const PATIENCE = 1_000;

/** The dependencies of an acquisition. */
export interface AcquisitionContext {
  readonly masters: readonly WatchedMaster[];
  readonly gates: Gates;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly random: Random;
  readonly witness: Witness;
  /** The name under which this process listens for wake-ups. */
  readonly listener: string;
  /** Called with each release that starts. */
  readonly releasing: (released: Promise<void>) => void;
  /** Called when a master reports that this process is next or, without a key, that wake-ups may have been lost. */
  readonly woken: (master: WatchedMaster, key: string | undefined) => void;
}

/**
 * Which masters an attempt contacts.
 *
 * - `everybody`: all masters at once
 * - `gate`: the home master, and the others only if it grants
 * - `reserved`: all masters at once, because the home master has reserved the key for this process
 */
type Step = 'everybody' | 'gate' | 'reserved';

/**
 * One acquisition, from the first attempt until it is granted or its waiting budget ends.
 *
 * The first attempt contacts all masters at once. If refused, the acquisition enqueues on the home master of the
 * resource: it contacts that master first and the others only after it has granted, and otherwise waits there until it
 * is woken.
 */
export class Acquisition {
  /** Number of attempts so far. */
  attempts = 0;
  private refusal: Refusal | undefined;
  private pace: Looks | undefined;
  /** Whether a master has woken this acquisition. If it still waits after that, the wake-up was in vain. */
  private calledInVain = false;
  /** The masters in whose queues this acquisition waits. */
  private queuedAt: Set<WatchedMaster> | undefined;

  constructor(
    private readonly context: AcquisitionContext,
    private readonly resources: readonly string[],
    private readonly names: KeyNames,
    /** The settings of this call. Its ttl and `minHold` are cut to the largest ttl that all masters know. */
    public call: CallSettings,
    private readonly waiter: Waiter,
    private readonly place: Place | undefined,
  ) {}

  /**
   * @param step the kind of the first attempt, if the waiter has made attempts before
   * @throws {LockError} if the budget ends
   * @throws the reason with which the waiter was stopped
   */
  async run(step?: Step): Promise<Holding> {
    try {
      return await this.contend(step);
    } finally {
      this.leaveAll();
    }
  }

  private async contend(first?: Step): Promise<Holding> {
    const { waiter, place, call: wanted } = this;
    const queued = first !== undefined || (place !== undefined && !place.isFirst);
    let step = first;
    for (let attempt = 1; ; attempt++) {
      while (place && !place.isFirst && !waiter.isOver) await waiter.pause();
      waiter.check();
      // An acquisition that finds no other ahead of it makes one full attempt, however small its budget.
      const isGuaranteed = attempt === 1 && !queued;
      if (!isGuaranteed && waiter.isOver) throw await this.failure();

      const announced = this.announce(wanted);
      const call = announced instanceof Promise ? await this.unlessOver(announced, isGuaranteed) : announced;
      if (announced instanceof Promise) waiter.check();
      if (!call) throw await this.failure();
      step ??= call.wait > 0 && this.context.gates.areCrowded(this.names.keys) ? 'gate' : 'everybody';
      this.attempts = attempt;
      const full = masterTimeoutFor(this.context.settings, call.ttl);
      const timeout = isGuaranteed ? full : Math.min(full, waiter.left);
      const gate = this.context.gates.gateOf(this.names.keys[0] as string);
      const tenure = this.newTenure(gate);
      waiter.interrupt = tenure;
      const since = this.context.clock.read();
      // The first attempt of a waiter needs no explained refusal: its next attempt asks for one.
      const ballot = await this.attempt(tenure, step, gate, timeout, attempt > 1 || call.wait === 0);
      waiter.interrupt = undefined;
      // A grant by the home master removes the place in its queue.
      if (gate && this.queuedAt && ballot.isGrantedBy(gate)) this.queuedAt.delete(gate);
      if (ballot.outcome === 'granted' && tenure.remaining > 0 && !waiter.isStopped) return tenure;
      // There is nothing to release if the home master alone was contacted and refused.
      if (!gate || step !== 'gate' || ballot.outcome !== 'held' || ballot.isSplit) this.giveBack(tenure);
      waiter.check();
      // An attempt that the deadline cut short is less informative than the previous one.
      const isTelling = ballot.outcome === 'held' && !ballot.isUncertain;
      if (isTelling || timeout === full) this.note({ ballot, since, timeout });
      const collected = this.isPassedOver ? await this.collect() : undefined;
      if (collected) return collected;
      step = await this.rest(step, ballot);
    }
  }

  /**
   * Announces the ttl to the masters. Called before each attempt and not once when waiting begins, so that the
   * announcement is recent when the lock is granted.
   */
  private announce(wanted: CallSettings): CallSettings | Promise<CallSettings> {
    const cut = (permitted: number): CallSettings => (this.call = cutTo(permitted, wanted));
    const permitted = this.context.witness.permit(Math.max(wanted.ttl, wanted.minHold));
    return typeof permitted === 'number' ? cut(permitted) : permitted.then(cut);
  }

  /** Resolves with `undefined` if the waiter is stopped first, or if its budget ends and this is not its guaranteed attempt. */
  private async unlessOver(announced: Promise<CallSettings>, isGuaranteed: boolean): Promise<CallSettings | undefined> {
    const { waiter, context } = this;
    let timer: Timer | undefined;
    const over = new Promise<undefined>((resolve) => {
      waiter.interrupt = { giveUp: () => resolve(undefined) };
      if (!isGuaranteed) timer = context.clock.schedule(Math.ceil(waiter.left), () => resolve(undefined));
    });
    const call = await Promise.race([announced, over]);
    timer?.cancel();
    waiter.interrupt = undefined;
    return call;
  }

  /** Whether others acquire again and again before this acquisition, because one of its resources is always held. */
  private get isPassedOver(): boolean {
    return this.names.keys.length > 1 && this.calledInVain && this.waiter.waited >= PATIENCE;
  }

  /**
   * Acquires the resources one by one. While it waits for the next one, it keeps those that it has, and competes for
   * that single resource like any other waiter. The order is sorted, so that two such acquisitions cannot deadlock.
   */
  private async collect(): Promise<Holding | undefined> {
    const { context, resources, call, waiter, place } = this;
    const collection = new Collection(context.clock, call);
    // Leave all queues: a wake-up could not be used while the keys are collected one by one.
    this.leaveAll();
    try {
      for (const names of eachOf(this.names)) {
        const part = new Acquisition(context, resources, names, call, waiter, place);
        collection.add(await part.run('gate'));
        if (part.call.ttl < this.call.ttl) this.call = part.call;
      }
      waiter.interrupt = collection;
      const holding = await collection.complete();
      waiter.interrupt = undefined;
      waiter.check();
      if (holding) return holding;
    } catch (error) {
      context.releasing(collection.release());
      throw error;
    }
    context.releasing(collection.release());
    return undefined;
  }

  private attempt(
    tenure: Tenure,
    step: Step,
    gate: WatchedMaster | undefined,
    timeout: number,
    explain: boolean,
  ): Promise<Ballot> {
    const { ttl } = this.call;
    if (!gate || step === 'everybody') return tenure.acquire(ttl, timeout, explain);
    const ticket = this.lineUp(gate);
    return step === 'reserved'
      ? tenure.acquireReserved(gate, ttl, timeout, ticket)
      : tenure.acquireThrough(gate, ttl, timeout, ticket, this.looks.areFailing);
  }

  /** Waits until another attempt makes sense, and returns its kind. */
  private async rest(step: Step, ballot: Ballot): Promise<Step> {
    const { looks } = this;
    const { gates } = this.context;
    const held = ballot.outcome === 'held';
    if (step !== 'everybody' && held && !ballot.isSplit) looks.noteRefusal();
    else if (step !== 'everybody' || !held) looks.noteFailure();
    if (step !== 'everybody' && ballot.outcome === 'unavailable') return 'everybody';
    if (step === 'everybody' && held && !looks.areFailing) return 'gate';
    const calls = gates.calls(gates.gateOf(this.names.keys[0] as string));
    const look = looks.delay(calls);
    const expiry = ballot.freeAfter === undefined ? Infinity : ballot.freeAfter + EXPIRY_RESOLUTION;
    const woken = await this.waiter.pause(Math.min(look, expiry)); // @mutant wake-up-trusted-without-the-timer
    if (woken === 'next') this.calledInVain = true;
    if (woken) looks.noteWakeUp();
    else looks.noteQuiet();
    // With several keys, others may still be held.
    if (woken === 'next' && this.names.keys.length === 1) return 'reserved';
    if (step === 'everybody' || woken || ballot.isSplit || expiry <= look) return 'gate';
    // This library sets no key without an expiry: only the other masters can show that such a key does not count.
    return looks.isWide(calls) || expiry === Infinity ? 'everybody' : 'gate';
  }

  private lineUp(gate: WatchedMaster): { queues: readonly string[]; waiter: string; waited: number } {
    const { listener, woken } = this.context;
    (this.queuedAt ??= new Set()).add(gate);
    gate.listen(listener, (key) => woken(gate, key));
    return { queues: this.names.queues, waiter: listener, waited: Math.floor(this.waiter.waited) };
  }

  private get looks(): Looks {
    return (this.pace ??= new Looks(this.context.random));
  }

  private leaveAll(): void {
    if (!this.queuedAt) return;
    const { keys, queues } = this.names;
    const request = { op: 'leave', keys, queues, waiter: this.context.listener } as const;
    for (const master of this.queuedAt) master.ask(request, () => undefined);
    this.queuedAt = undefined;
  }

  private giveBack(tenure: Tenure): void {
    this.context.releasing(tenure.release(0));
  }

  private note(attempt: FailedAttempt): void {
    this.refusal = new Refusal(this.context.masters, attempt, this.refusal ?? this.place?.refusal);
    if (this.place) this.place.refusal = this.refusal;
  }

  private async failure(): Promise<LockError> {
    const { resources, call, waiter } = this;
    const { masters, clock } = this.context;
    const refusal = this.refusal ?? this.place?.refusal;
    // This acquisition takes nothing any more: a release in the meantime must wake the next process.
    this.leaveAll();
    await refusal?.settle(clock, (giveUp) => (waiter.interrupt = { giveUp }));
    waiter.interrupt = undefined;
    waiter.check();
    if (!refusal || refusal.isHeld) {
      return new LockNotAcquiredError(resources, refusal?.report ?? [], call.wait, refusal?.freeAfter);
    }
    const what = `lock ${showNames(resources)}`;
    const intent = refusal.outcome === 'granted' ? `${what} before its validity has ended` : what;
    return new QuorumUnavailableError(intent, resources, refusal.report, quorumOf(masters.length), masters.length);
  }

  private newTenure(gate: WatchedMaster | undefined): Tenure {
    const { masters, settings, clock, random, witness } = this.context;
    return new Tenure({ masters, settings, clock, witness, names: this.names, token: random.token(), gate }); // @mutant token-reused-across-attempts
  }
}

/** The same call, with its ttl and `minHold` cut to `ttl`, which all masters know. */
function cutTo(ttl: number, call: CallSettings): CallSettings {
  if (ttl >= call.ttl && ttl >= call.minHold) return call;
  return { ...call, ttl: Math.min(call.ttl, ttl), minHold: Math.min(call.minHold, ttl) };
}
