import type { Clock } from './clock.js';
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

/** Masters set their keys one after the other and expire them to the millisecond: come back so much later. */
const EXPIRY_RESOLUTION = 2;

/** Who wants several resources and has been passed over for so many milliseconds takes them one by one. */
const PATIENCE = 1_000;

/** What an acquisition needs from its surroundings. */
export interface AcquisitionContext {
  readonly masters: readonly WatchedMaster[];
  readonly gates: Gates;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly random: Random;
  readonly witness: Witness;
  /** The name by which this process listens for wake-ups. */
  readonly listener: string;
  /** Told of each release that was started. */
  readonly releasing: (released: Promise<void>) => void;
  /** Called when a master may tell this process that it is next. */
  readonly woken: (master: WatchedMaster, key: string | undefined) => void;
}

/** Whom an attempt asks: all masters; the gate, and the others if it grants; or all because the gate will grant. */
type Step = 'everybody' | 'gate' | 'reserved';

/** One attempt. Durations are milliseconds. */
interface Attempt {
  readonly tenure: Tenure;
  readonly step: Step;
  readonly gate: WatchedMaster | undefined;
  readonly ttl: number;
  readonly timeout: number;
  readonly explain: boolean;
}

/**
 * One acquisition, from the first attempt until it is granted or the waiting budget has ended.
 *
 * The first attempt asks all masters at once. Who is refused lines up at the gate of the resource: it asks that master
 * first, the others only when the gate has granted, and otherwise waits there until it is woken.
 */
export class Acquisition {
  /** Attempts that were made so far. */
  attempts = 0;
  private refusal: Refusal | undefined;
  private pace: Looks | undefined;
  /** Whether a master called for it. If it still waits afterwards, that was in vain. */
  private calledInVain = false;
  /** The masters in whose queues this acquisition stands. */
  private queuedAt: Set<WatchedMaster> | undefined;

  constructor(
    private readonly context: AcquisitionContext,
    private readonly resources: readonly string[],
    private readonly names: KeyNames,
    private readonly call: CallSettings,
    private readonly waiter: Waiter,
    private readonly place: Place | undefined,
  ) {}

  /**
   * @param step what the first attempt is, for somebody who has made others before
   * @throws {LockError} when the budget has ended; and what the waiter was stopped with
   */
  async run(step?: Step): Promise<Holding> {
    try {
      return await this.contend(step);
    } finally {
      this.leaveAll();
    }
  }

  private async contend(first?: Step): Promise<Holding> {
    const { waiter, place, call } = this;
    const queued = first !== undefined || (place !== undefined && !place.isFirst);
    let step = first;
    for (let attempt = 1; ; attempt++) {
      while (place && !place.isFirst && !waiter.isOver) await waiter.pause();
      waiter.check();
      // Whoever finds nobody ahead makes one attempt in full, however small its budget.
      const isGuaranteed = attempt === 1 && !queued;
      if (!isGuaranteed && waiter.isOver) throw await this.failure();

      // While it waited, the masters may have forgotten the ttl that was announced when it began.
      const permitted = isGuaranteed ? call.ttl : this.context.witness.permit(Math.max(call.ttl, call.minHold));
      const ttl = Math.min(call.ttl, typeof permitted === 'number' ? permitted : await permitted);
      step ??= call.wait > 0 && this.context.gates.areCrowded(this.names.keys) ? 'gate' : 'everybody';
      this.attempts = attempt;
      const full = masterTimeoutFor(this.context.settings, call.ttl);
      const timeout = isGuaranteed ? full : Math.min(full, waiter.left);
      const gate = this.context.gates.gateOf(this.names.keys[0] as string);
      const tenure = this.newTenure(gate);
      waiter.interrupt = tenure;
      const since = this.context.clock.read();
      // A refusal is only worth explaining if there is no better chance to ask.
      const ballot = await this.attempt({ tenure, step, gate, ttl, timeout, explain: attempt > 1 || call.wait === 0 });
      waiter.interrupt = undefined;
      // Granted at the gate: the place in its queue is gone.
      if (gate && this.queuedAt && ballot.isGrantedBy(gate)) this.queuedAt.delete(gate);
      if (ballot.outcome === 'granted' && tenure.remaining > 0 && !waiter.isStopped) return tenure;
      // A gate that refuses for certain has nothing to give back, and nobody else was asked, if there is a usable gate.
      if (!gate || step !== 'gate' || ballot.outcome !== 'held' || ballot.isSplit) this.giveBack(tenure);
      waiter.check();
      // An attempt that the deadline cut short says less than the one before.
      const isTelling = ballot.outcome === 'held' && !ballot.isUncertain;
      if (isTelling || timeout === full) this.note({ ballot, since, timeout });
      const collected = this.isPassedOver ? await this.collect() : undefined;
      if (collected) return collected;
      step = await this.rest(step, ballot);
    }
  }

  /** Whether others had their turn again and again, because one of several resources was always held. */
  private get isPassedOver(): boolean {
    return this.names.keys.length > 1 && this.calledInVain && this.waiter.waited >= PATIENCE;
  }

  /**
   * Takes the resources one after the other, and keeps what it has while it waits for the next, where it is one of
   * those who wait for that alone. In sorted order: no two that do so can wait for each other.
   */
  private async collect(): Promise<Holding | undefined> {
    const { context, resources, call, waiter, place } = this;
    const collection = new Collection(context.clock, call);
    // Nobody needs to be called for what he cannot take.
    this.leaveAll();
    try {
      for (const names of eachOf(this.names)) {
        collection.add(await new Acquisition(context, resources, names, call, waiter, place).run('gate'));
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

  private attempt({ tenure, step, gate, ttl, timeout, explain }: Attempt): Promise<Ballot> {
    if (!gate || step === 'everybody') return tenure.acquire(ttl, timeout, explain);
    const ticket = this.lineUp(gate);
    return step === 'reserved'
      ? tenure.acquireReserved(gate, ttl, timeout, ticket)
      : tenure.acquireThrough(gate, ttl, timeout, ticket, this.looks.areFailing);
  }

  /** Waits until another attempt makes sense, and tells which. */
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
    const woken = await this.waiter.pause(Math.min(look, expiry));
    if (woken === 'next') this.calledInVain = true;
    if (woken) looks.noteWakeUp();
    else looks.noteQuiet();
    // Of several keys, others may be held.
    if (woken === 'next' && this.names.keys.length === 1) return 'reserved';
    if (step === 'everybody' || woken || ballot.isSplit || expiry <= look) return 'gate';
    // A key without an expiry is no lock of ours: only the other masters can tell when it does not count.
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
    // It takes nothing any more: a release meanwhile is for the next process.
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
    return new Tenure({ masters, settings, clock, witness, names: this.names, token: random.token(), gate });
  }
}
