import { judgeStep, type Judgement, type Movement } from '../../lib/redis/guard/server-clock.js';
import { type Emit } from './checker.js';
import { MASTER_NAMES, StateModel, stepsOf } from './states.js';

/** A rule that is left out, or the rule that was tried first. */
type StandstillWeakening =
  | 'the samples are forgotten'
  | 'what no answers decide is forgotten'
  | 'one other master is enough'
  | 'one master shows a standstill of all'
  | 'a master that moved further is alike'
  | 'an answer from before is taken'
  | 'a sample from after the standstill is shifted';

// Protocol 8.11
export interface StandstillOptions {
  readonly masters: number;
  /** How often the clocks of C stand still, and for how many ticks at most. */
  readonly stands: number;
  readonly stand: number;
  /** Whole ticks by which the clocks of masters are set, one after the other, each on another master. */
  readonly sets?: readonly number[];
  /** How many masters C meets later than the others. */
  readonly late?: number;
  /** Whether an answer may take half a tick, before the master reads its clock or after that. */
  readonly delay?: 'before' | 'after';
  /** Whether an answer may arrive later than those of other masters that were sent after it. */
  readonly overtaken?: boolean;
  /** Whether C judges only when all have answered that are not accused. */
  readonly complete?: boolean;
  /** How many masters may be judged at a time; default: all. */
  readonly atOnce?: number;
  readonly without?: readonly StandstillWeakening[];
}

/** Everything is in half ticks; a sample is two bounds for how far a master's clock is ahead of the one of C. */
const TICK = 2;
/** Milliseconds for the judgement. */
const HALF = 500;
const ALLOWANCE = 10;
/** Bounds are stored with this added, so that none is negative; 0 stands for none. */
const ZERO = 2;

const [STOOD, SUBTRACTED, STANDS, SETS] = [0, 1, 2, 3];
/** How often a standstill was acted on. */
const HANDLED = 4;
/** The answer that is under way: its master, its value, and whether a standstill was acted on since. */
const SENT_BY = 5;
const [SENT, SENT_BEFORE, MASTERS] = [6, 7, 8];

/** Of each master: how far it was set, whether it is accused, doubted or met late, its sample, and the answer that is judged. */
const SET = 0;
const ACCUSED = 1;
const DOUBTED = 2;
const LATE = 3;
const LEAST = 4;
const MOST = 5;
/** How much of the sample's interval has already been subtracted. */
const COUNTED = 6;
const [SUSPECT_LEAST, SUSPECT_MOST] = [7, 8];
/** Two bounds of each master's answer to the question. */
const ANSWERS = 9;

const { action, describe } = stepsOf({
  stand: (_, __, ticks) => `the clocks of C stand still for ${ticks}`,
  set: (master) => `the clock of ${master} is set forward`,
  sample: (master) => `${master} answers`,
  send: (master) => `${master} sends an answer`,
  arrive: (master) => `the answer of ${master} arrives`,
  answer: (master, asked) => `${master} answers the question about ${asked}`,
  judge: (master) => `C judges ${master}`,
});

const EXACT = [[0, 0]] as const;
/** Bounds of an answer that takes half a tick. */
const SPEEDS = { before: [...EXACT, [0, 1]], after: [...EXACT, [-1, 0]] } as const;

/**
 * The clocks of a client C stand still, both, and those of masters are set forward. C compares the answers of the masters
 * with earlier ones, by the judgement of the library itself. Time is not counted, only what C cannot see of it: every step
 * can happen at any time or never.
 */
export class StandstillModel extends StateModel<StandstillOptions> {
  private readonly size: number;
  private readonly quorum: number;

  constructor(options: StandstillOptions) {
    const { masters } = options;
    const size = ANSWERS + 2 * masters;
    super(options, MASTERS + masters * size);
    this.size = size;
    this.quorum = Math.floor(masters / 2) + 1;
  }

  initial(): Uint8Array[] {
    const { masters, stands, sets = [], late = 0 } = this.options;
    const state = new Uint8Array(this.width);
    state[STANDS] = stands;
    state[SETS] = sets.length;
    for (let m = 0; m < masters; m += 1) {
      const at = this.at(m);
      if (m < masters - late) state.fill(ZERO, at + LEAST, at + MOST + 1);
      else state[at + LATE] = 1;
    }
    return [state];
  }

  violation(state: Uint8Array): string | undefined {
    const { masters } = this.options;
    let right = 0;
    let wrong = 0;
    let set = 0;
    for (let m = 0; m < masters; m += 1) {
      const at = this.at(m);
      const isSet = state[at + SET]! > 0;
      set += state[at + SET]!;
      if (state[at + ACCUSED] === 1 && !isSet) return `m${m + 1} is accused, and its clock was never set`;
      if (state[at + DOUBTED] === 1) return `the clock of m${m + 1} seems to have been set back`;
      if (!this.isContent(state, m)) continue;
      if (isSet) wrong += 1;
      else right += 1;
    }
    if (wrong >= this.quorum) return 'masters whose clocks were set are a quorum';
    const missed = TICK * state[STOOD]!;
    if (right >= this.quorum && state[SUBTRACTED]! < missed) return 'C has forgotten a standstill';
    // Each answer may be half a tick late. What may be the step of a master is subtracted, too.
    return state[SUBTRACTED]! > missed + state[HANDLED]! && set === 0
      ? 'C subtracts more than it has missed'
      : undefined;
  }

  /** Whether the next answer of a master that C has watched all the time shows nothing. */
  private isContent(state: Uint8Array, m: number): boolean {
    const at = this.at(m);
    if (state[at + ACCUSED] === 1 || state[at + LATE] === 1 || this.isSuspect(state, m)) return false;
    return state[at + MOST] === 0 || this.ahead(state, m) + ZERO <= state[at + MOST]!;
  }

  successors(state: Uint8Array, emit: Emit): void {
    this.move(state, emit);
    this.arrive(state, emit);
    for (let m = 0; m < this.options.masters; m += 1) {
      if (state[this.at(m) + ACCUSED] === 1) continue;
      this.sample(state, m, emit);
      if (!this.isSuspect(state, m)) continue;
      this.judge(state, m, emit);
      for (let other = 0; other < this.options.masters; other += 1) this.answer(state, m, other, emit);
    }
  }

  private move(state: Uint8Array, emit: Emit): void {
    const { masters, stand, sets = [] } = this.options;
    if (state[STANDS]! > 0) {
      for (let ticks = 1; ticks <= stand; ticks += 1) {
        const next = this.copy(state);
        next[STANDS]! -= 1;
        next[STOOD]! += ticks;
        emit(next, action('stand', 0, 0, ticks));
      }
    }
    const ticks = sets[sets.length - state[SETS]!];
    if (ticks === undefined) return;
    for (let m = 0; m < masters; m += 1) {
      if (state[this.at(m) + SET]! > 0) continue;
      const next = this.copy(state);
      next[SETS]! -= 1;
      next[this.at(m) + SET] = ticks;
      emit(next, action('set', m));
    }
  }

  private sample(state: Uint8Array, m: number, emit: Emit): void {
    const value = this.ahead(state, m) + ZERO;
    if (this.options.overtaken && state[SENT_BY] === 0) {
      const next = this.copy(state);
      next[SENT_BY] = m + 1;
      next[SENT] = value;
      next[SENT_BEFORE] = 0;
      emit(next, action('send', m));
    }
    // A connection keeps the order of its answers.
    if (this.isSuspect(state, m) || state[SENT_BY] === m + 1) return;
    const { masters, atOnce = masters } = this.options;
    const judged = Array.from({ length: masters }, (_, other) => other).filter((other) => this.isSuspect(state, other));
    if (judged.length >= atOnce) return;
    for (const [min, max] of this.speeds) {
      const next = this.copy(state);
      this.take(next, m, value + min, value + max);
      emit(next, action('sample', m));
    }
  }

  private arrive(state: Uint8Array, emit: Emit): void {
    const m = state[SENT_BY]! - 1;
    if (m < 0) return;
    const next = this.copy(state);
    next.fill(0, SENT_BY, SENT_BEFORE + 1);
    const isTaken = state[SENT_BEFORE] === 0 || this.weak.has('an answer from before is taken');
    if (isTaken && state[this.at(m) + ACCUSED] === 0 && !this.isSuspect(state, m)) {
      this.take(next, m, state[SENT]!, state[SENT]!);
    }
    emit(next, action('arrive', m));
  }

  private take(next: Uint8Array, m: number, min: number, max: number): void {
    const at = this.at(m);
    if (next[at + LEAST] === 0) {
      next[at + LEAST] = min;
      next[at + MOST] = max;
    } else if (min > next[at + MOST]!) {
      next[at + SUSPECT_LEAST] = min;
      next[at + SUSPECT_MOST] = max;
      next.fill(0, at + ANSWERS, at + this.size);
    } else if (max < next[at + LEAST]!) next[at + DOUBTED] = 1;
  }

  /** A master answers to the question what the others show. */
  private answer(state: Uint8Array, m: number, other: number, emit: Emit): void {
    const at = this.at(m) + ANSWERS + 2 * other;
    if (state[at] !== 0 || state[this.at(other) + ACCUSED] === 1 || state[SENT_BY] === other + 1) return;
    const value = this.ahead(state, other) + ZERO;
    for (const [min, max] of this.speeds) {
      const next = this.copy(state);
      next[at] = value + min;
      next[at + 1] = value + max;
      emit(next, action('answer', other, m));
    }
  }

  /** C judges by the answers that it has. */
  private judge(state: Uint8Array, m: number, emit: Emit): void {
    const at = this.at(m);
    if (this.options.complete && this.answered(state, m) < this.unaccused(state)) return;
    const next = this.copy(state);
    const judgement = this.judgement(state, m);
    if (judgement?.culprit === 'server') next[at + ACCUSED] = 1;
    else if (judgement?.culprit === 'client') this.handle(next, judgement);
    // Without answers for a quorum, nothing is granted. Otherwise, what may be a standstill counts as one.
    else if (judgement?.culprit === 'either' && this.answered(state, m) >= this.quorum) this.handle(next, judgement, m);
    // The next answer is judged anew.
    else if (this.weak.has('what no answers decide is forgotten')) next.fill(0, at + LEAST, at + COUNTED + 1);
    next.fill(0, at + SUSPECT_LEAST, at + this.size);
    emit(next, action('judge', m));
  }

  /** `undefined` if what it showed was acted on meanwhile. */
  private judgement(state: Uint8Array, m: number): Judgement | undefined {
    const { masters } = this.options;
    const at = this.at(m);
    const suspect = this.movement(state, m, at + SUSPECT_LEAST);
    const known: (Movement | undefined)[] = [];
    for (let other = 0; other < masters; other += 1) {
      if (other === m) continue;
      // All are compared over the same time.
      const isNewer = state[this.at(other) + LATE] === 1 || state[at + LATE] === 1;
      const movement = isNewer ? undefined : this.movement(state, other, at + ANSWERS + 2 * other);
      known.push(movement);
    }
    const own = this.movement(state, m, at + ANSWERS + 2 * m);
    if (suspect === undefined || suspect.min <= 0) return undefined;
    const all = [suspect, own, ...known].filter((movement) => movement !== undefined);
    const furthest = Math.max(...all.map(({ max }) => max));
    const latest = this.weak.has('a master that moved further is alike') ? { min: furthest, max: furthest } : own;
    const quorum = this.weak.has('one other master is enough') ? 1 : this.quorum;
    return judgeStep(suspect, known, { quorum, allowance: ALLOWANCE, latest });
  }

  /** How far a master has moved from its sample to an answer; `undefined` without one of them. */
  private movement(state: Uint8Array, m: number, answer: number): Movement | undefined {
    const at = this.at(m);
    if (state[answer] === 0 || state[at + LEAST] === 0) return undefined;
    const min = state[answer]! - state[at + MOST]!;
    const max = state[answer + 1]! - state[at + LEAST]!;
    return { min: min * HALF, max: max * HALF, counted: state[at + COUNTED]! * HALF };
  }

  private unaccused(state: Uint8Array): number {
    const masters = Array.from({ length: this.options.masters }, (_, m) => state[this.at(m) + ACCUSED]);
    return masters.filter((accused) => accused === 0).length;
  }

  private answered(state: Uint8Array, m: number): number {
    const masters = Array.from({ length: this.options.masters }, (_, other) => this.at(m) + ANSWERS + 2 * other);
    return masters.filter((answer) => state[answer]! > 0).length;
  }

  /** C subtracts what a quorum shows, or what one master alone shows, which may be wrong. */
  private handle(next: Uint8Array, shown: { readonly min: number; readonly by: number }, alone?: number): void {
    const by = shown.by / HALF;
    next[SUBTRACTED]! += by;
    next[HANDLED]! += 1;
    if (next[SENT_BY]! > 0) next[SENT_BEFORE] = 1;
    for (let other = 0; other < this.options.masters; other += 1) {
      const at = this.at(other);
      if (next[at + LEAST] === 0) continue;
      // Whether it was taken before the standstill or after that is not known.
      const isUnclear = next[at + LATE] === 1 && !this.weak.has('a sample from after the standstill is shifted');
      if (isUnclear || this.weak.has('the samples are forgotten')) {
        next.fill(0, at + LEAST, at + COUNTED + 1);
        continue;
      }
      const isCertain = alone === undefined || alone === other || this.weak.has('one master shows a standstill of all');
      const min = isCertain ? shown.min / HALF : 0;
      next[at + LEAST]! += min;
      next[at + COUNTED]! += by - min;
      next[at + MOST]! += by;
    }
  }

  /** How far the clock of a master is ahead of the one of C. */
  private ahead(state: Uint8Array, m: number): number {
    return TICK * (state[STOOD]! + state[this.at(m) + SET]!);
  }

  private isSuspect(state: Uint8Array, m: number): boolean {
    return state[this.at(m) + SUSPECT_LEAST]! > 0;
  }

  private get speeds(): readonly (readonly [number, number])[] {
    return this.options.delay ? SPEEDS[this.options.delay] : EXACT;
  }

  private at(m: number): number {
    return MASTERS + m * this.size;
  }

  describe(code: number): string {
    return describe(code, MASTER_NAMES, MASTER_NAMES);
  }

  show(state: Uint8Array): string {
    const ticks = (bound: number): string => `${(bound - ZERO) / TICK}`;
    const interval = (at: number): string => {
      const [min = 0, max = 0] = state.subarray(at, at + 2);
      if (min === 0) return '-';
      return min === max ? ticks(min) : `${ticks(min)}..${ticks(max)}`;
    };
    const masters = Array.from({ length: this.options.masters }, (_, m) => {
      const at = this.at(m);
      const suspicion = this.isSuspect(state, m) ? ` shows ${interval(at + SUSPECT_LEAST)}` : '';
      const accusation = state[at + ACCUSED] === 1 ? ' accused' : '';
      return `m${m + 1} +${this.ahead(state, m) / TICK} from ${interval(at + LEAST)}${suspicion}${accusation}`;
    });
    return [...masters, `C has subtracted ${state[SUBTRACTED]! / TICK} of ${state[STOOD]}`].join(' | ');
  }
}
