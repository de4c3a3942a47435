import type { Clock } from './clock.js';
import { type LockError, LockNotAcquiredError, QuorumUnavailableError } from './errors.js';
import type { Gates } from './gates.js';
import { type Ballot, quorumOf } from './quorum.js';
import type { Random } from './random.js';
import { type CallSettings, masterTimeoutFor, type Settings } from './settings.js';
import { type KeyNames, Tenure } from './tenure.js';
import type { Place, Waiter } from './wait-queue.js';
import type { WatchedMaster } from './watched-master.js';

/** Wake-ups can be lost: a waiter also looks for itself, at random moments within these bounds, in milliseconds. */
const LOOK_AFTER = { least: 250, most: 750 };
/** After a split vote or a failure, the first retry comes at a random moment within this bound, in milliseconds. */
const RETRY_WITHIN = 20;
/** Masters set their keys one after the other and expire them to the millisecond: come back so much later. */
const EXPIRY_RESOLUTION = 2;

/** What an acquisition needs from its surroundings. */
export interface AcquisitionContext {
  readonly masters: readonly WatchedMaster[];
  readonly gates: Gates;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly random: Random;
  /** The name by which this process listens for wake-ups. */
  readonly listener: string;
  /** Told of each release that was started. */
  readonly releasing: (released: Promise<void>) => void;
  /** Called when a master may tell this process that it is next. */
  readonly woken: (master: WatchedMaster, key: string | undefined) => void;
}

type Step = 'everybody' | 'gate';

/** What came of one attempt, and who was asked. */
interface Attempt {
  readonly tenure: Tenure;
  readonly ballot: Ballot;
  readonly asked: Step;
}

/**
 * One acquisition, from the first attempt until it is granted or the waiting budget has ended.
 *
 * The first attempt asks all masters at once. Who is refused lines up at the gate of the resource: it asks that master
 * first, the others only when the gate has granted, and otherwise waits there until it is woken.
 */
export class Acquisition {
  private refusal: Ballot | undefined;
  /** Attempts in a row after which the gate's word was of no use: it gave none, or the other masters disagreed. */
  private failures = 0;
  private readonly queuedAt = new Set<WatchedMaster>();

  constructor(
    private readonly context: AcquisitionContext,
    private readonly resources: readonly string[],
    private readonly names: KeyNames,
    private readonly call: CallSettings,
    private readonly waiter: Waiter,
    private readonly place: Place | undefined,
  ) {}

  /** @throws {LockError} when the budget has ended; and what the waiter was stopped with */
  async run(): Promise<Tenure> {
    try {
      return await this.contend();
    } finally {
      for (const master of this.queuedAt) this.leave(master);
    }
  }

  private async contend(): Promise<Tenure> {
    const { waiter, place, call } = this;
    const queued = place !== undefined && !place.isFirst;
    let step: Step | undefined;
    for (let attempt = 1; ; attempt++) {
      while (place && !place.isFirst && !waiter.isOver) await waiter.pause();
      waiter.check();
      // Whoever finds nobody ahead makes one attempt in full, however small its budget.
      const isGuaranteed = attempt === 1 && !queued;
      if (waiter.isOver && !isGuaranteed) throw this.failure();

      step ??= call.wait > 0 && this.context.gates.areCrowded(this.names.keys) ? 'gate' : 'everybody';
      const full = masterTimeoutFor(this.context.settings, call.ttl);
      const timeout = isGuaranteed ? full : Math.min(full, waiter.left);
      const { tenure, ballot, asked } = await this.attempt(step, timeout, attempt === 1 && call.wait > 0);
      if (ballot.outcome === 'granted' && tenure.remaining > 0 && !waiter.isStopped) return tenure;
      // A gate that refuses for certain has nothing to give back, and nobody else was asked.
      if (asked === 'everybody' || ballot.outcome !== 'held' || ballot.isSplit) this.giveBack(tenure);
      waiter.check();
      // An attempt that the deadline cut short says less than the one before.
      if (ballot.outcome === 'held' || timeout === full) this.note(ballot);
      step = await this.rest(step, ballot);
    }
  }

  private async attempt(step: Step, timeout: number, mayFollow: boolean): Promise<Attempt> {
    const { call, waiter } = this;
    const gate = step === 'gate' ? this.context.gates.gateOf(this.names.keys[0] as string) : undefined;
    const tenure = this.newTenure();
    waiter.interrupt = () => tenure.giveUp();
    // A refusal is only worth explaining if there is no better chance to ask.
    const ballot = gate
      ? await tenure.acquireThrough(gate, call.ttl, timeout, this.lineUp(gate), this.failures > 0)
      : await tenure.acquire(call.ttl, timeout, !mayFollow);
    waiter.interrupt = undefined;
    // Granted at the gate: the place in its queue is gone.
    if (gate && ballot.outcome === 'granted') this.queuedAt.delete(gate);
    // Without a usable gate there is nobody to ask first.
    return { tenure, ballot, asked: gate ? 'gate' : 'everybody' };
  }

  /** Waits until another attempt makes sense, and tells which. */
  private async rest(step: Step, ballot: Ballot): Promise<Step> {
    const held = ballot.outcome === 'held';
    if (step === 'gate' && held && !ballot.isSplit) this.failures = 0;
    else if (step === 'gate' || !held) this.failures++;
    if (step === 'gate' && ballot.outcome === 'unavailable') return 'everybody';
    // Back to a gate that fails only after a while: it may fail at once, again and again.
    if (step === 'everybody' && held && this.failures === 0) return 'gate';
    const look = this.delay();
    const expiry = ballot.freeAfter === undefined ? Infinity : ballot.freeAfter + EXPIRY_RESOLUTION;
    const woken = await this.waiter.pause(Math.min(look, expiry));
    // What the gate says need not be what a quorum says: ask that now and then.
    return step === 'everybody' || woken || ballot.isSplit || expiry <= look ? 'gate' : 'everybody';
  }

  private delay(): number {
    const { least, most } = LOOK_AFTER;
    const chance = this.context.random.fraction();
    if (this.failures === 0) return least + chance * (most - least);
    return Math.max(1, chance * Math.min(most, RETRY_WITHIN * 2 ** this.failures));
  }

  private lineUp(gate: WatchedMaster): { queues: readonly string[]; waiter: string; waited: number } {
    const { listener, woken } = this.context;
    this.queuedAt.add(gate);
    gate.listen(listener, (key) => woken(gate, key));
    return { queues: this.names.queues, waiter: listener, waited: Math.floor(this.waiter.waited) };
  }

  private leave(master: WatchedMaster): void {
    const { keys, queues } = this.names;
    master.ask({ op: 'leave', keys, queues, waiter: this.context.listener }, () => undefined);
  }

  private giveBack(tenure: Tenure): void {
    this.context.releasing(tenure.release(0));
  }

  private note(ballot: Ballot): void {
    this.refusal = ballot;
    if (this.place) this.place.refusal = ballot;
  }

  private failure(): LockError {
    const { resources, call } = this;
    const { masters } = this.context;
    const refusal = this.refusal ?? this.place?.refusal;
    const report = refusal ? masters.map(({ name }) => refusal.reportOf(name)) : [];
    if (!refusal || refusal.outcome === 'held') {
      return new LockNotAcquiredError(resources, report, call.wait, refusal?.freeAfter);
    }
    const what = `lock ${resources.map((resource) => JSON.stringify(resource)).join(', ')}`;
    const intent = refusal.outcome === 'granted' ? `${what} before its validity has ended` : what;
    return new QuorumUnavailableError(intent, resources, report, quorumOf(masters.length), masters.length);
  }

  private newTenure(): Tenure {
    const { masters, settings, clock, random } = this.context;
    return new Tenure(masters, settings, clock, this.names, random.token());
  }
}
