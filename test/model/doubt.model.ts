import { type Emit } from './checker.js';
import { bitCount, decrement, StateModel, stepsOf } from './states.js';

/** A rule that is left out, or the rule that was tried first. */
type DoubtWeakening =
  | 'no doubt: the monotonic clock alone counts'
  | 'the lock is believed during the doubt'
  | 'a minority ends the doubt'
  | 'the clocks of a majority end the doubt'
  | 'a key that was set again counts'
  | 'a key that an earlier extension set again counts'
  | 'a lead that began after the question is forgiven'
  | 'an extension counts although its lead is longer than the validity'
  | 'a step back is not agreed on';

// Protocol 3.4
export interface DoubtOptions {
  readonly masters: 1 | 3;
  /** Ticks for which a key lives, and for which a client believes in a lock from the start of its round. */
  readonly ttl: number;
  /** Longest suspension, in ticks. A stunned machine whose wall clock is corrected is the same to its processes. */
  readonly suspend: number;
  /** How often the wall clock of L may be set, and by how much at most. */
  readonly steps: number;
  readonly by: number;
  /** Number of masters on the machine of L: they stand still with it, and their clocks are set with its own. */
  readonly sameHost?: number;
  /** How often the clocks of all machines may be set forward together. */
  readonly allSteps?: number;
  /** How often the clocks of all masters may be set back together. */
  readonly setBack?: number;
  /** Whether answers to extensions may be lost. */
  readonly losesAnswers?: boolean;
  /** Not a weakening but a question: whether a lock is ever kept through a step. */
  readonly neverKeeps?: boolean;
  readonly without?: readonly DoubtWeakening[];
}

/** Owner of the key, its ticks, and how far the clock has moved beyond the monotonic clock of L since both last agreed. */
const [OWNER, EXPIRY, MOVED, MASTER] = [0, 1, 2, 3];

/** Movements are stored with this added. */
const ZERO = 16;

const [FREE, L, X] = [0, 1, 2];

/** Validity by the monotonic clock. */
const TICKS_LEFT = 0;
/** What the wall clock is ahead, and how much of that since the question. */
const LEAD = 1;
const NEW_LEAD = 2;
/** Ticks that the answers to the question can yield; 0 without a doubt. */
const QUESTION = 3;
/** Masters whose answers count for it. */
const PROOF = 4;
/** Masters that an extension may have set again since the last round that counted. */
const HEALED = 5;
const [SUSPENDED, SUSPENSION, EXTENSION, EXTENDED, STEPS, X_BELIEF, X_ROUND, X_COUNTED] = [6, 7, 8, 9, 10, 11, 12, 13];
/** Whether X has believed since L was granted the lock. */
const OVERTAKEN = 14;
const [ALL_STEPS, SET_BACK, KEPT, CLIENT] = [15, 16, 17, 18];

/** Amounts are stored with this added. */
const BACK = 8;

const { action, describe } = stepsOf({
  tick: () => 'a tick passes',
  suspend: () => 'the machine of L is suspended',
  resume: () => 'it resumes',
  step: (_, __, amount) => `the wall clock of L is set by ${amount - BACK}`,
  'step of all': (_, __, amount) => `all wall clocks are set by ${amount - BACK}`,
  'step of the masters': (_, __, amount) => `the clocks of the masters are set by ${amount - BACK}`,
  ask: () => 'L asks all masters',
  answer: (_, master) => `${master} answers`,
  'give up': () => 'the doubt ends without answers',
  extend: () => 'L begins to extend',
  extension: (_, master) => `${master} extends for L`,
  'lost answer': (_, master) => `${master} extends for L, and the answer is lost`,
  acquire: () => 'X begins to acquire',
  grant: (_, master) => `${master} grants to X`,
});

/**
 * A step of the wall clock is a doubt that the masters resolve. L holds a lock and X contends; X has perfect clocks. Ticks
 * are whole, and rates agree. Every step can happen at any time or never, which covers delays and partitions.
 *
 * `TICKS_LEFT` counts by the monotonic clock of L. What its wall clock is ahead since both last agreed is the lead: L
 * cannot know whether time has passed or the clock was set.
 */
export class DoubtModel extends StateModel<DoubtOptions> {
  private readonly quorum: number;
  private readonly client: number;

  constructor(options: DoubtOptions) {
    super(options, options.masters * MASTER + CLIENT);
    this.quorum = Math.floor(options.masters / 2) + 1;
    this.client = options.masters * MASTER;
  }

  initial(): Uint8Array[] {
    const { masters, ttl, steps, setBack = 0, allSteps = 0 } = this.options;
    const state = new Uint8Array(this.width);
    for (let m = 0; m < masters; m += 1) state.set([L, ttl, ZERO], m * MASTER);
    const at = this.client;
    state[at + TICKS_LEFT] = ttl;
    state[at + STEPS] = steps;
    state[at + ALL_STEPS] = allSteps;
    state[at + SET_BACK] = setBack;
    return [state];
  }

  violation(state: Uint8Array): string | undefined {
    if (this.options.neverKeeps) return this.value(state, KEPT) === 1 ? 'L keeps its lock through a step' : undefined;
    if (!this.believes(state)) return undefined;
    if (this.value(state, X_BELIEF) > 0) return 'L and X both believe that they hold the lock';
    return this.value(state, OVERTAKEN) === 1 ? 'L believes again after X has held the lock' : undefined;
  }

  /** A suspended process believes nothing: it does nothing. */
  private believes(state: Uint8Array): boolean {
    if (this.value(state, SUSPENDED) === 1 || this.value(state, TICKS_LEFT) === 0) return false;
    if (this.ignoresLead || this.weak.has('the lock is believed during the doubt')) return true;
    return this.value(state, QUESTION) === 0 && this.value(state, LEAD) === 0;
  }

  private get ignoresLead(): boolean {
    return this.weak.has('no doubt: the monotonic clock alone counts');
  }

  private get comparesClocks(): boolean {
    return this.weak.has('the clocks of a majority end the doubt');
  }

  successors(state: Uint8Array, emit: Emit): void {
    this.tick(state, emit);
    this.suspensions(state, emit);
    this.steps(state, emit);
    this.doubt(state, emit);
    this.begin(state, emit);
    for (let m = 0; m < this.options.masters; m += 1) {
      this.answer(state, m, emit);
      this.extension(state, m, emit);
      this.grant(state, m, emit);
    }
  }

  private tick(state: Uint8Array, emit: Emit): void {
    const { masters, suspend } = this.options;
    const isSuspended = this.value(state, SUSPENDED) === 1;
    if (isSuspended && this.value(state, SUSPENSION) === suspend) return;
    const next = this.copy(state);
    const at = this.client;
    for (let m = 0; m < masters; m += 1) {
      if (isSuspended && this.isOnHost(m)) continue;
      this.age(next, m, 1);
      if (isSuspended) this.move(next, m, 1);
    }
    if (isSuspended) {
      next[at + SUSPENSION]! += 1;
      this.lead(next, 1);
    } else {
      decrement(next, at + TICKS_LEFT);
      if (next[at + EXTENSION]! > 0 && decrement(next, at + EXTENSION) === 0) next[at + EXTENDED] = 0;
      if (next[at + QUESTION]! > 0 && decrement(next, at + QUESTION) === 0) this.fail(next);
      if (next[at + TICKS_LEFT] === 0) this.lose(next);
    }
    decrement(next, at + X_BELIEF);
    if (next[at + X_ROUND]! > 0 && decrement(next, at + X_ROUND) === 0) next[at + X_COUNTED] = 0;
    emit(next, action('tick'));
  }

  private suspensions(state: Uint8Array, emit: Emit): void {
    const at = this.client;
    const next = this.copy(state);
    if (state[at + SUSPENDED] === 1) {
      next[at + SUSPENDED] = 0;
      emit(next, action('resume'));
    } else if (state[at + SUSPENSION]! < this.options.suspend && state[at + TICKS_LEFT]! > 0) {
      next[at + SUSPENDED] = 1;
      emit(next, action('suspend'));
    }
  }

  /** Clocks are set. A master's keys live by its clock. */
  private steps(state: Uint8Array, emit: Emit): void {
    const { by, masters } = this.options;
    const at = this.client;
    for (let amount = -by; amount <= by; amount += 1) {
      if (amount === 0) continue;
      // A wall clock that is set back while its machine is suspended hides the suspension: an assumption.
      if (state[at + STEPS]! > 0 && (amount > 0 || this.runs(state))) {
        const next = this.copy(state);
        next[at + STEPS]! -= 1;
        this.lead(next, amount);
        for (let m = 0; m < masters; m += 1) if (this.isOnHost(m)) this.set(next, m, amount);
        emit(next, action('step', 0, 0, amount + BACK));
      }
      if (state[at + ALL_STEPS]! > 0 && amount > 0) {
        const next = this.copy(state);
        next[at + ALL_STEPS]! -= 1;
        this.lead(next, amount);
        for (let m = 0; m < masters; m += 1) this.set(next, m, amount);
        emit(next, action('step of all', 0, 0, amount + BACK));
      }
      if (state[at + SET_BACK]! > 0 && amount < 0) {
        const next = this.copy(state);
        next[at + SET_BACK]! -= 1;
        for (let m = 0; m < masters; m += 1) this.set(next, m, amount);
        emit(next, action('step of the masters', 0, 0, amount + BACK));
      }
    }
  }

  /**
   * L reads its clocks before one is set back: what led before still does. An assumption, which fails if the wall clock is
   * set back between a suspension and the first reading after it.
   */
  private lead(next: Uint8Array, amount: number): void {
    const at = this.client;
    if (next[at + TICKS_LEFT] === 0) return;
    if (amount > 0) {
      next[at + LEAD]! += amount;
      if (next[at + QUESTION]! > 0) next[at + NEW_LEAD]! += amount;
    } else if (this.weak.has('a step back is not agreed on')) {
      next[at + LEAD] = Math.max(0, next[at + LEAD]! + amount);
    }
  }

  private set(next: Uint8Array, m: number, amount: number): void {
    const at = m * MASTER;
    this.move(next, m, amount);
    if (amount > 0) this.age(next, m, amount);
    else if (next[at + OWNER] !== FREE) next[at + EXPIRY]! -= amount;
  }

  private move(next: Uint8Array, m: number, amount: number): void {
    if (this.comparesClocks) next[m * MASTER + MOVED]! += amount;
  }

  private age(next: Uint8Array, m: number, ticks: number): void {
    const at = m * MASTER;
    next[at + EXPIRY] = Math.max(0, next[at + EXPIRY]! - ticks);
    if (next[at + EXPIRY] === 0) next[at + OWNER] = FREE;
  }

  /** A doubt begins with a question to all masters, and ends without an answer at any time. */
  private doubt(state: Uint8Array, emit: Emit): void {
    const at = this.client;
    if (!this.runs(state) || this.ignoresLead || state[at + TICKS_LEFT] === 0) return;
    if (state[at + QUESTION] === 0) {
      if (state[at + LEAD] === 0) return;
      const next = this.copy(state);
      next[at + QUESTION] = this.options.ttl;
      next[at + NEW_LEAD] = 0;
      emit(next, action('ask'));
      return;
    }
    const next = this.copy(state);
    this.fail(next);
    emit(next, action('give up'));
  }

  /** A master answers whether it still has the key, and extends it. It sets a key again that is gone. */
  private answer(state: Uint8Array, m: number, emit: Emit): void {
    const at = this.client;
    const master = m * MASTER;
    const bit = 1 << m;
    if (!this.runs(state) || state[at + QUESTION] === 0 || (state[at + PROOF]! & bit) !== 0) return;
    const next = this.copy(state);
    if (this.comparesClocks) {
      if (state[master + MOVED]! > ZERO) return;
      next[at + PROOF]! |= bit;
    } else if (!this.touch(next, m)) {
      return;
    } else if (state[master + OWNER] === FREE) {
      if (this.weak.has('a key that was set again counts')) next[at + PROOF]! |= bit;
    } else if ((state[at + HEALED]! & bit) === 0 || this.weak.has('a key that an earlier extension set again counts')) {
      next[at + PROOF]! |= bit;
    }
    const needed = this.weak.has('a minority ends the doubt') ? 1 : this.quorum;
    if (bitCount(next[at + PROOF]!) >= needed) this.succeed(next);
    emit(next, action('answer', 0, m));
  }

  /** An extension of L takes effect on a master. Returns whether the key is its own afterwards. */
  private touch(next: Uint8Array, m: number): boolean {
    const master = m * MASTER;
    if (next[master + OWNER] === X) return false;
    if (next[master + OWNER] === FREE) next[this.client + HEALED]! |= 1 << m;
    next[master + OWNER] = L;
    next[master + EXPIRY] = this.options.ttl;
    return true;
  }

  /** The keys were there all the time: the validity counts from the question, by both clocks. */
  private succeed(next: Uint8Array): void {
    const at = this.client;
    if (next[at + NEW_LEAD]! > 0 && !this.weak.has('a lead that began after the question is forgiven')) {
      // What one master had before the new lead, it may lack by now: L asks once more.
      this.endQuestion(next);
      return;
    }
    if (next[at + LEAD]! >= this.options.ttl) next[at + KEPT] = 1;
    if (!this.comparesClocks) next[at + TICKS_LEFT] = next[at + QUESTION]!;
    next[at + LEAD] = 0;
    this.endQuestion(next);
    next[at + HEALED] = 0;
  }

  /** The whole lead counts as time. */
  private fail(next: Uint8Array): void {
    const at = this.client;
    next[at + TICKS_LEFT] = Math.max(0, next[at + TICKS_LEFT]! - next[at + LEAD]!);
    const left = Math.max(0, next[at + EXTENSION]! - next[at + LEAD]!);
    next[at + EXTENSION] = left;
    if (left === 0) next[at + EXTENDED] = 0;
    next[at + LEAD] = 0;
    this.endQuestion(next);
    if (next[at + TICKS_LEFT] === 0) this.lose(next);
  }

  private endQuestion(next: Uint8Array): void {
    const at = this.client;
    next[at + QUESTION] = 0;
    next[at + PROOF] = 0;
    next[at + NEW_LEAD] = 0;
    for (let m = 0; m < this.options.masters; m += 1) next[m * MASTER + MOVED] = ZERO;
  }

  private lose(next: Uint8Array): void {
    const at = this.client;
    next[at + LEAD] = 0;
    next[at + HEALED] = 0;
    next[at + EXTENSION] = 0;
    next[at + EXTENDED] = 0;
    this.endQuestion(next);
  }

  private begin(state: Uint8Array, emit: Emit): void {
    const at = this.client;
    const isCertain = state[at + QUESTION] === 0 && (state[at + LEAD] === 0 || this.ignoresLead);
    if (this.runs(state) && isCertain && state[at + TICKS_LEFT]! > 0 && state[at + EXTENSION] === 0) {
      const next = this.copy(state);
      next[at + EXTENSION] = this.options.ttl;
      emit(next, action('extend'));
    }
    if (state[at + X_BELIEF] === 0 && state[at + X_ROUND] === 0) {
      const next = this.copy(state);
      next[at + X_ROUND] = this.options.ttl;
      emit(next, action('acquire'));
    }
  }

  /** A request and its answer are one step: a later answer only shortens what L believes. */
  private extension(state: Uint8Array, m: number, emit: Emit): void {
    const at = this.client;
    const bit = 1 << m;
    if (state[at + EXTENSION] === 0 || (state[at + EXTENDED]! & bit) !== 0) return;
    if (this.options.losesAnswers) {
      const next = this.copy(state);
      // A request without an answer may have set the key again.
      if (this.touch(next, m)) {
        next[at + HEALED]! |= bit;
        emit(next, action('lost answer', 0, m));
      }
    }
    const next = this.copy(state);
    if (!this.runs(state) || !this.touch(next, m)) return;
    next[at + EXTENDED]! |= bit;
    if (bitCount(next[at + EXTENDED]!) >= this.quorum) {
      const isLong = this.weak.has('an extension counts although its lead is longer than the validity');
      // All of the lead came after the round had begun: none begins with a lead.
      const lead = this.ignoresLead || isLong ? 0 : state[at + LEAD]!;
      if (state[at + TICKS_LEFT]! > lead) {
        next[at + TICKS_LEFT] = next[at + EXTENSION]!;
        next[at + HEALED] = 0;
        if (isLong) {
          next[at + LEAD] = 0;
          this.endQuestion(next);
        }
      }
      next[at + EXTENSION] = 0;
      next[at + EXTENDED] = 0;
    }
    emit(next, action('extension', 0, m));
  }

  private grant(state: Uint8Array, m: number, emit: Emit): void {
    const at = this.client;
    const master = m * MASTER;
    if (state[at + X_ROUND] === 0 || state[master + OWNER] !== FREE) return;
    const next = this.copy(state);
    next[master + OWNER] = X;
    next[master + EXPIRY] = this.options.ttl;
    next[at + X_COUNTED]! |= 1 << m;
    if (bitCount(next[at + X_COUNTED]!) >= this.quorum) {
      next[at + X_BELIEF] = next[at + X_ROUND]!;
      next[at + X_ROUND] = 0;
      next[at + X_COUNTED] = 0;
      next[at + OVERTAKEN] = 1;
    }
    emit(next, action('grant', 0, m));
  }

  private runs(state: Uint8Array): boolean {
    return this.value(state, SUSPENDED) === 0;
  }

  private isOnHost(m: number): boolean {
    return m < (this.options.sameHost ?? 0);
  }

  private value(state: Uint8Array, field: number): number {
    return state[this.client + field]!;
  }

  describe(code: number): string {
    return describe(code, 'L');
  }

  show(state: Uint8Array): string {
    const masters = Array.from({ length: this.options.masters }, (_, m) => {
      const [owner = 0, expiry] = state.subarray(m * MASTER, m * MASTER + MASTER);
      return `m${m + 1} ${owner === FREE ? '-' : `${'-LX'[owner]!}/${expiry}`}`;
    });
    const lead = this.value(state, LEAD);
    const doubt = this.value(state, QUESTION) > 0 ? ', in doubt' : '';
    const own = `L ${this.value(state, TICKS_LEFT)} left${lead === 0 ? '' : `, leads by ${lead}`}${doubt}`;
    const other = this.value(state, X_BELIEF) > 0 ? `X believes for ${this.value(state, X_BELIEF)}` : 'X -';
    return [...masters, this.value(state, SUSPENDED) === 1 ? 'L is suspended' : own, other].join(' | ');
  }
}
