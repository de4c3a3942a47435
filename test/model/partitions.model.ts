import { type Emit } from './checker.js';
import { bitCount, decrement, StateModel, stepsOf } from './states.js';

/** A part of Protocol 12.8 that is left out. */
type PartitionsWeakening =
  | 'any order after a refusal'
  | 'one partition is enough'
  | 'an extension counts if one partition extends'
  | 'what was granted is not given back'
  | 'no wait after a loss';

export interface PartitionsOptions {
  readonly partitions: number;
  /** The partitions that each client takes together. */
  readonly clients: readonly (readonly number[])[];
  readonly ttl: number;
  /** How many times a partition loses its data. It grants again after a ttl. */
  readonly losses: number;
  readonly without?: readonly PartitionsWeakening[];
}

const [OWNER, EXPIRY, WAIT] = [0, 1, 2];
/** Whether the owner has sent a release that has not arrived. */
const RELEASED = 3;
const PARTITION = 4;

const [BELIEF, ROUND] = [0, 1];
/** Partitions that have granted or extended in this round. */
const GRANTED = 2;
/** Whether the acquisition has been refused before. */
const ORDERED = 3;
const CLIENT = 4;

const NAMES = 'ABC';

const { action, describe } = stepsOf({
  tick: () => 'a tick passes',
  begin: (client) => `${client} begins an attempt`,
  'begin to extend': (client) => `${client} begins an extension`,
  grant: (client, partition) => `${partition} grants ${client}`,
  extend: (client, partition) => `${partition} extends what ${client} has`,
  refuse: (client, partition) => `${partition} refuses ${client}`,
  release: (client) => `${client} releases`,
  stop: (client) => `${client} stops waiting`,
  arrive: (client, partition) => `the release of ${client} reaches ${partition}`,
  lose: (_, partition) => `${partition} loses its data`,
});

/**
 * Protocol 12.8: locks of several partitions of one cluster. Each partition decides alone, and a loss of its data with the
 * quarantine that follows is one step. A release takes its time, and the next request of its sender overtakes it nowhere,
 * because a connection keeps the order.
 */
export class PartitionsModel extends StateModel<PartitionsOptions> {
  private readonly losses: number;
  private readonly sets: readonly number[];

  constructor(options: PartitionsOptions) {
    const losses = options.partitions * PARTITION + options.clients.length * CLIENT;
    super(options, losses + 1);
    this.losses = losses;
    this.sets = options.clients.map((partitions) => partitions.reduce((mask, p) => mask | (1 << p), 0));
  }

  initial(): Uint8Array[] {
    const state = new Uint8Array(this.width);
    state[this.losses] = this.options.losses;
    return [state];
  }

  violation(state: Uint8Array): string | undefined {
    for (const [c, set] of this.sets.entries()) {
      for (let d = 0; d < c; d += 1) {
        const both = state[this.client(c) + BELIEF]! > 0 && state[this.client(d) + BELIEF]! > 0;
        if (both && (set & this.sets[d]!) !== 0)
          return `${NAMES[c]!} and ${NAMES[d]!} both believe in a lock of one partition`;
      }
      if (this.blocks(state, c, c, 0)) return 'attempts after a refusal block each other';
    }
    return undefined;
  }

  /** Whether ordered attempts, from one to the next that it waits for, lead back to the first one. */
  private blocks(state: Uint8Array, first: number, c: number, depth: number): boolean {
    if (depth > this.sets.length || !this.isOrdered(state, c)) return false;
    return this.candidates(state, c).some((p) => {
      const owner = state[p * PARTITION + OWNER]! - 1;
      if (owner < 0 || owner === c || state[p * PARTITION + RELEASED] === 1) return false;
      return owner === first ? this.isOrdered(state, first) : this.blocks(state, first, owner, depth + 1);
    });
  }

  private isOrdered(state: Uint8Array, c: number): boolean {
    return (
      state[this.client(c) + ROUND]! > 0 &&
      state[this.client(c) + BELIEF] === 0 &&
      state[this.client(c) + ORDERED] === 1
    );
  }

  successors(state: Uint8Array, emit: Emit): void {
    for (const c of this.sets.keys()) {
      this.begin(state, c, emit);
      for (const p of this.candidates(state, c)) this.ask(state, c, p, emit);
      this.release(state, c, emit);
    }
    for (let p = 0; p < this.options.partitions; p += 1) {
      this.arrive(state, p, emit);
      this.lose(state, p, emit);
    }
    this.tick(state, emit);
  }

  private begin(state: Uint8Array, c: number, emit: Emit): void {
    const at = this.client(c);
    const isRunning = state[at + ROUND]! > 0;
    if (isRunning && (state[at + BELIEF] === 0 || state[at + ROUND] === this.options.ttl)) return;
    const next = this.copy(state);
    next[at + ROUND] = this.options.ttl;
    next[at + GRANTED] = 0;
    emit(next, action(state[at + BELIEF]! > 0 ? 'begin to extend' : 'begin', c));
  }

  /** The partitions that a round asks next: all of them, or after a refusal the first one that has not granted. */
  private candidates(state: Uint8Array, c: number): number[] {
    const at = this.client(c);
    if (state[at + ROUND] === 0) return [];
    const left = this.options.clients[c]!.filter((p) => (state[at + GRANTED]! & (1 << p)) === 0);
    const isAnyOrder = state[at + ORDERED] === 0 || this.weak.has('any order after a refusal');
    const isParallel = state[at + BELIEF]! > 0 || isAnyOrder;
    return isParallel ? left : left.slice(0, 1);
  }

  // Protocol 12.1 and 12.8
  private ask(state: Uint8Array, c: number, p: number, emit: Emit): void {
    const at = this.client(c);
    const extends_ = state[at + BELIEF]! > 0;
    const owner = state[p * PARTITION + OWNER]!;
    const next = this.copy(state);
    if (state[p * PARTITION + WAIT]! > 0 || (owner !== 0 && owner !== c + 1)) {
      // An extension that fails is tried again within the validity.
      if (extends_) return;
      this.giveUp(next, c);
      next[at + ORDERED] = 1;
      emit(next, action('refuse', c, p));
      return;
    }
    next[p * PARTITION + OWNER] = c + 1;
    next[p * PARTITION + EXPIRY] = this.options.ttl;
    next[p * PARTITION + RELEASED] = 0;
    next[at + GRANTED]! |= 1 << p;
    const enough = this.enough(extends_);
    if (bitCount(next[at + GRANTED]!) >= Math.min(enough, this.options.clients[c]!.length)) {
      next[at + BELIEF] = next[at + ROUND]!;
      next[at + ROUND] = 0;
      next[at + GRANTED] = 0;
      next[at + ORDERED] = 0;
    }
    emit(next, action(extends_ ? 'extend' : 'grant', c, p));
  }

  private enough(extends_: boolean): number {
    if (this.weak.has('one partition is enough')) return 1;
    if (extends_ && this.weak.has('an extension counts if one partition extends')) return 1;
    return this.options.partitions;
  }

  /** Ends a round, and sends the release of what it has to every partition. */
  private giveUp(next: Uint8Array, c: number): void {
    const at = this.client(c);
    next[at + ROUND] = 0;
    next[at + GRANTED] = 0;
    next[at + BELIEF] = 0;
    if (this.weak.has('what was granted is not given back')) return;
    for (let p = 0; p < this.options.partitions; p += 1) {
      if (next[p * PARTITION + OWNER] === c + 1) next[p * PARTITION + RELEASED] = 1;
    }
  }

  private release(state: Uint8Array, c: number, emit: Emit): void {
    if (state[this.client(c) + BELIEF] === 0 && state[this.client(c) + ROUND] === 0) return;
    const next = this.copy(state);
    this.giveUp(next, c);
    next[this.client(c) + ORDERED] = 0;
    emit(next, action(state[this.client(c) + BELIEF]! > 0 ? 'release' : 'stop', c));
  }

  private arrive(state: Uint8Array, p: number, emit: Emit): void {
    if (state[p * PARTITION + RELEASED] === 0) return;
    const next = this.copy(state);
    next.fill(0, p * PARTITION, p * PARTITION + WAIT);
    next[p * PARTITION + RELEASED] = 0;
    emit(next, action('arrive', state[p * PARTITION + OWNER]! - 1, p));
  }

  private lose(state: Uint8Array, p: number, emit: Emit): void {
    if (state[this.losses] === 0) return;
    const next = this.copy(state);
    next[this.losses]! -= 1;
    next.fill(0, p * PARTITION, (p + 1) * PARTITION);
    if (!this.weak.has('no wait after a loss')) next[p * PARTITION + WAIT] = this.options.ttl;
    emit(next, action('lose', 0, p));
  }

  private tick(state: Uint8Array, emit: Emit): void {
    const next = this.copy(state);
    for (let p = 0; p < this.options.partitions; p += 1) {
      decrement(next, p * PARTITION + WAIT);
      if (decrement(next, p * PARTITION + EXPIRY) === 0) next.fill(0, p * PARTITION, p * PARTITION + WAIT);
      if (next[p * PARTITION + OWNER] === 0) next[p * PARTITION + RELEASED] = 0;
    }
    for (const c of this.sets.keys()) {
      const at = this.client(c);
      const isActive = next[at + BELIEF]! > 0 || next[at + ROUND]! > 0;
      const isHeld = next[at + BELIEF]! > 0;
      const belief = decrement(next, at + BELIEF);
      const round = decrement(next, at + ROUND);
      // An extension that succeeds after the end of the old validity does not count.
      if (isActive && (isHeld ? belief === 0 : round === 0)) this.giveUp(next, c);
      if (round === 0) next[at + GRANTED] = 0;
    }
    emit(next, action('tick'));
  }

  describe(code: number): string {
    return describe(code, NAMES, ['p1', 'p2', 'p3']);
  }

  show(state: Uint8Array): string {
    const partitions = Array.from({ length: this.options.partitions }, (_, p) => {
      const at = p * PARTITION;
      const owner = state[at + OWNER]!;
      const key =
        owner === 0
          ? '-'
          : `${NAMES[owner - 1]!}/${state[at + EXPIRY]!}${state[at + RELEASED] === 1 ? ' released' : ''}`;
      return `p${p + 1} ${key}${state[at + WAIT]! > 0 ? ` waits ${state[at + WAIT]!}` : ''}`;
    });
    const clients = this.sets.map((_, c) => {
      const at = this.client(c);
      const granted = this.options.clients[c]!.filter((p) => (state[at + GRANTED]! >> p) & 1).map((p) => `p${p + 1}`);
      const order = state[at + ORDERED] === 1 ? ' in order' : '';
      const round = state[at + ROUND]! > 0 ? ` asks${order} [${granted.join(' ')}]/${state[at + ROUND]!}` : order;
      return `${NAMES[c]!}${state[at + BELIEF]! > 0 ? ` believes for ${state[at + BELIEF]!}` : ''}${round}`;
    });
    return [...partitions, ...clients].join(' | ');
  }

  private client(c: number): number {
    return this.options.partitions * PARTITION + c * CLIENT;
  }
}
