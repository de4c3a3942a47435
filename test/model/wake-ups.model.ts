import { type Emit } from './checker.js';
import { bitCount, sortRecords, StateModel, stepsOf } from './states.js';

type Mode = 'shared' | 'exclusive';

export interface WakeUpsOptions {
  /** The processes, each with one waiter. Those of one mode stand together. */
  readonly processes: readonly Mode[];
  /** Processes of one mode are interchangeable: fewer states, and counter-examples that are harder to read. */
  readonly sorted?: boolean;
  /**
   * Whether the masters measure the age of a waiter with each request anew: a request that is slow makes it as young as
   * one that came later. Where two are as old, the reader is before the writer in the queue, and later than its key.
   */
  readonly measured?: boolean;
  readonly without?: readonly string[];
}

/** The ages that the home master and the other masters measure. */
interface Measured {
  readonly since: number;
  readonly stands: number;
}

/** The fields of a process. Its age is the order of arrival, from one; 0 for a process that does not wait. */
const PROCESS = 5;
const at = {
  phase: (p: number): number => p * PROCESS,
  age: (p: number): number => p * PROCESS + 1,
  flags: (p: number): number => p * PROCESS + 2,
  /** Its age in the queue, and in the writer key; 0 if it is not there. */
  score: (p: number): number => p * PROCESS + 3,
  stands: (p: number): number => p * PROCESS + 4,
};
const AGES = [at.age, at.score, at.stands];

const [OUT, QUEUED, WOKEN, HOLDS] = [0, 1, 2, 3];
/** Crashed processes: still in the queue, with what a waiter leaves behind, with a lock. */
const [DEAD_QUEUED, GONE, DEAD_HOLDS] = [4, 5, 6];

/** Bits of FLAGS. Of all processes, at most one has the writer key. */
const [RESERVED, KEY] = [1, 2];
/** The next poll is due. */
const DUE = 4;
/** The notification was not heard. */
const UNHEARD = 8;
/** It has had the writer key since it waits. */
const HAD = 16;

const LOST = 'a waiter sleeps although the key is free and nothing will wake it';
const LEFT_BEHIND = 'a shared waiter sleeps although only shared holders are before it';
const PASSED = 'a later shared request passes a waiting writer';
const PROPERTIES = [undefined, LOST, LEFT_BEHIND, PASSED];

const steps = stepsOf({
  ask: (process) => `${process} asks`,
  poll: (process) => `${process} polls`,
  'ask again': (process) => `${process} asks, woken`,
  release: (process) => `${process} releases`,
  leave: (process) => `${process} stops waiting`,
  crash: (process) => `${process} crashes`,
  reservation: (process) => `the reservation for ${process} expires`,
  writer: (process) => `the writer key of ${process} expires`,
  key: (process) => `the lock of ${process} expires`,
});
type Step = Parameters<typeof steps.action>[0];

/**
 * Protocol 11.5, 11.6 and 11.7 at the home master: two queues, wake-ups in a chain, and the writer key. The home master decides alone, and
 * there is no time: reservations, the writer key and the locks of crashed processes may end at any moment. After that each waiter
 * polls, because a refusal carries the remaining time, so a property that a wake-up must keep holds again afterwards.
 */
export class WakeUpsModel extends StateModel<WakeUpsOptions> {
  private readonly broken: number;
  private readonly exclusive: readonly boolean[];
  private readonly areAlike: readonly boolean[];
  private readonly names: readonly string[];

  constructor(options: WakeUpsOptions) {
    const { processes } = options;
    super(options, processes.length * PROCESS + 1);
    this.broken = processes.length * PROCESS;
    this.exclusive = processes.map((mode) => mode === 'exclusive');
    this.areAlike = processes.map((mode, p) => mode === processes[p + 1]);
    const shared = processes.filter((mode) => mode === 'shared').length;
    this.names = processes.map((mode, p) => (mode === 'shared' ? 'STUV'[p]! : 'XYZ'[p - shared]!));
  }

  initial(): Uint8Array[] {
    return [new Uint8Array(this.width)];
  }

  violation(state: Uint8Array): string | undefined {
    if (state[this.broken] !== 0) return PROPERTIES[state[this.broken]!];
    if (this.isString(state) || this.willWake(state)) return undefined;
    const sleeps = (p: number): boolean => this.phase(state, p) === QUEUED;
    if (this.isFree(state) && this.some(sleeps)) return LOST;
    const writer = this.oldest(state, true);
    // Of two ages, either may be the one that counts.
    if (this.options.measured && (writer >= 0 || this.keyOwner(state) >= 0)) return undefined;
    const reader = this.some((p) => sleeps(p) && !this.exclusive[p] && (writer < 0 || this.older(state, p, writer)));
    return reader ? LEFT_BEHIND : undefined;
  }

  /** Whether a process acts without a wake-up: it was woken, its poll is due, or what a crashed one left will expire. */
  private willWake(state: Uint8Array): boolean {
    return this.some((p) => {
      const phase = this.phase(state, p);
      if (phase === WOKEN || (this.has(state, p, DUE) && phase === QUEUED)) return true;
      const left = this.weak.has('the key of a crashed writer stays') ? RESERVED : RESERVED | KEY;
      return this.isDead(phase) && this.has(state, p, left) && !this.has(state, p, UNHEARD);
    });
  }

  successors(state: Uint8Array, emit: Emit): void {
    for (const p of this.exclusive.keys()) {
      const phase = this.phase(state, p);
      if (phase === OUT || phase === QUEUED || phase === WOKEN) this.ask(state, p, emit);
      if (phase === QUEUED || phase === WOKEN) this.leave(state, p, emit);
      if (phase === HOLDS) this.release(state, p, emit);
      if (phase === QUEUED || phase === WOKEN || phase === HOLDS) this.crash(state, p, emit);
      this.expire(state, p, emit);
    }
  }

  /** A first request, a poll, or the request after a wake-up. */
  private ask(state: Uint8Array, p: number, emit: Emit): void {
    const phase = this.phase(state, p);
    const hasWaited = phase !== OUT;
    const { measured } = this.options;
    const ages = measured && hasWaited ? this.agesFrom(state, state[at.age(p)]!) : [undefined];
    for (const since of ages) {
      // The writer key is written by a request of its own.
      for (const stands of this.exclusive[p] ? ages : [since]) {
        const next = this.copy(state);
        // Protocol 5.3
        if (!hasWaited) this.join(next, p);
        const age = next[at.age(p)]!;
        this.answer(next, p, { since: since ?? age, stands: stands ?? age });
        this.emit(next, phase === OUT ? 'ask' : phase === QUEUED ? 'poll' : 'ask again', p, emit);
      }
    }
  }

  private answer(next: Uint8Array, p: number, { since, stands }: Measured): void {
    const hasWaited = this.phase(next, p) !== OUT;
    const flags = at.flags(p);
    const reserved = this.has(next, p, RESERVED);
    next[flags]! &= ~(RESERVED | DUE);
    const others = !this.isFree(next);
    const deferred = !this.exclusive[p] && !this.isString(next) && this.deferred(next, p, { since, reserved });
    if (this.exclusive[p] ? others : this.isString(next) || deferred) {
      if (this.phase(next, p) !== QUEUED) next[at.score(p)] = since;
      next[at.phase(p)] = QUEUED;
      // Refused by a set.
      if (this.exclusive[p] && !this.isString(next)) this.writeKey(next, p, stands);
      // The refusal carries the remaining time of a reservation; of a deferred request, that of the writer key.
      if (others && !deferred && !this.isHeld(next)) next[flags]! |= DUE;
      if (deferred && reserved && this.weak.has('a shared waiter that is deferred keeps its reservation'))
        next[flags]! |= RESERVED;
      if (this.isFree(next) && !this.weak.has('no wake-up after a shared request was deferred at a free key'))
        this.wake(next);
      return;
    }
    const excused = reserved && !this.weak.has('a reservation is no excuse');
    if (!this.exclusive[p] && !excused && this.passes(next, p, since)) next[this.broken] = PROPERTIES.indexOf(PASSED);
    this.endWait(next, p, HOLDS);
    const chain =
      !this.weak.has('no wake after a shared grant') && !this.weak.has('one shared waiter without the chain');
    if (!this.exclusive[p] && hasWaited && chain) this.wake(next);
  }

  /** Protocol 11.6: a writer that has the key keeps it, and its first arrival. */
  private writeKey(next: Uint8Array, p: number, stands: number): void {
    const owner = this.keyOwner(next);
    if (owner >= 0 && !this.weak.has('another writer replaces the key')) return;
    if (owner >= 0) this.dropKey(next, owner);
    next[at.flags(p)]! |= KEY | HAD;
    next[at.stands(p)] = stands;
  }

  private dropKey(next: Uint8Array, owner: number): void {
    next[at.flags(owner)]! &= ~KEY;
  }

  /** The process whose writer key is there, or -1. */
  private keyOwner(state: Uint8Array): number {
    for (const p of this.exclusive.keys()) if (this.has(state, p, KEY)) return p;
    return -1;
  }

  /** It waits no more, and removes its writer key. */
  private endWait(next: Uint8Array, p: number, phase: number): void {
    const owner = this.keyOwner(next);
    const stands = next[at.stands(p)]!;
    this.set(next, p, phase);
    if (owner === p && this.weak.has('the key outlasts its writer')) {
      next[at.flags(p)]! |= KEY | HAD;
      next[at.stands(p)] = stands;
    }
    if (owner >= 0 && this.exclusive[p] && this.weak.has('a writer that ends removes the key of another'))
      this.dropKey(next, owner);
  }

  /** Protocol 11.6: a shared request that is not older than the writer key. */
  private deferred(
    state: Uint8Array,
    p: number,
    { since, reserved }: { readonly since: number; readonly reserved: boolean },
  ): boolean {
    if (this.weak.has('no writer key')) return false;
    if (reserved && !this.weak.has('a reservation does not pass the writer key')) return false;
    const queue = this.weak.has('the queue defers');
    return this.some((x) => {
      const waits = this.has(state, x, KEY) || (queue && (this.phase(state, x) === QUEUED || this.isQueued(state, x)));
      return this.exclusive[x]! && waits && this.precedes(state, x, since);
    });
  }

  private passes(state: Uint8Array, p: number, since: number): boolean {
    const each = this.weak.has('every exclusive waiter defers');
    return this.some((x) => {
      const phase = this.phase(state, x);
      if (!this.exclusive[x] || !this.precedes(state, x, since)) return false;
      return phase === QUEUED ? each || this.has(state, x, HAD) : phase === WOKEN && this.has(state, x, HAD);
    });
  }

  private release(state: Uint8Array, p: number, emit: Emit): void {
    const next = this.copy(state);
    this.set(next, p, OUT);
    this.wake(next);
    this.emit(next, 'release', p, emit);
  }

  private leave(state: Uint8Array, p: number, emit: Emit): void {
    const next = this.copy(state);
    const reserved = this.has(state, p, RESERVED);
    this.endWait(next, p, OUT);
    if (reserved || !this.weak.has('a leave wakes only if it had a reservation')) this.wake(next);
    this.emit(next, 'leave', p, emit);
  }

  /** Protocol 11.7. */
  private wake(next: Uint8Array): void {
    while (!this.isString(next)) {
      const reader = this.oldest(next, false);
      let writer = this.oldest(next, true);
      if (reader >= 0 && (writer < 0 || next[at.score(reader)]! <= next[at.score(writer)]!)) {
        if (this.mayWake(next, reader)) {
          const heard = this.pop(next, reader);
          if (heard && this.weak.has('one shared waiter without the chain')) return;
          if (!heard && this.weak.has('a waiter that does not listen ends the wake-up')) return;
          continue;
        }
        writer = this.weak.has('a shared head of the queue that is deferred ends the wake-up')
          ? -1
          : this.oldest(next, true, this.score(next, reader));
      }
      if (writer < 0 || !this.isFree(next)) return;
      const heard = this.pop(next, writer);
      if (heard || this.weak.has('a waiter that does not listen ends the wake-up')) return;
    }
  }

  /** A writer that was woken and is slow is not in its queue, but its key stands. */
  private mayWake(state: Uint8Array, reader: number): boolean {
    if (this.weak.has('a wake-up compares the queues and not the writer key')) return true;
    const since = this.score(state, reader);
    return !this.some((x) => this.has(state, x, KEY) && this.precedes(state, x, since));
  }

  /** Pops a waiter, reserves the key for it and notifies it. Returns whether it listens. Protocol 5.4. */
  private pop(next: Uint8Array, p: number): boolean {
    const heard = this.phase(next, p) === QUEUED;
    const flags = at.flags(p);
    next[flags]! &= ~DUE;
    const score = this.score(next, p);
    next[at.score(p)] = 0;
    if (heard) {
      if (!this.exclusive[p] && this.passes(next, p, score)) next[this.broken] = PROPERTIES.indexOf(PASSED);
      next[at.phase(p)] = WOKEN;
      next[flags]! |= RESERVED;
      return true;
    }
    next[at.phase(p)] = GONE;
    if (!this.exclusive[p] && this.weak.has('a shared waiter that does not listen keeps its reservation'))
      next[flags]! |= RESERVED | UNHEARD;
    return false;
  }

  private crash(state: Uint8Array, p: number, emit: Emit): void {
    const next = this.copy(state);
    const phase = this.phase(state, p);
    next[at.phase(p)] = phase === QUEUED ? DEAD_QUEUED : phase === WOKEN ? GONE : DEAD_HOLDS;
    next[at.flags(p)]! &= ~DUE;
    if (phase !== QUEUED) next[at.score(p)] = 0;
    // A process that was woken takes its wake-up with it.
    if (phase === WOKEN && !this.has(state, p, RESERVED)) this.makeDue(next);
    this.emit(next, 'crash', p, emit);
  }

  private expire(state: Uint8Array, p: number, emit: Emit): void {
    const phase = this.phase(state, p);
    if (this.has(state, p, RESERVED)) {
      const next = this.copy(state);
      next[at.flags(p)]! &= ~(RESERVED | UNHEARD);
      if (this.isDead(phase) && !this.has(state, p, UNHEARD)) this.makeDue(next);
      this.emit(next, 'reservation', p, emit);
    }
    const isCrashed = this.isDead(phase) && !this.weak.has('the key of a crashed writer stays');
    if (this.has(state, p, KEY) && (isCrashed || phase === OUT)) {
      const next = this.copy(state);
      next[at.flags(p)]! &= ~(KEY | HAD);
      next[at.stands(p)] = 0;
      this.makeDue(next);
      this.emit(next, 'writer', p, emit);
    }
    if (phase !== DEAD_HOLDS) return;
    const next = this.copy(state);
    this.set(next, p, OUT);
    this.makeDue(next);
    this.emit(next, 'key', p, emit);
  }

  // Protocol 5.5
  private makeDue(next: Uint8Array): void {
    for (const p of this.exclusive.keys()) if (this.phase(next, p) === QUEUED) next[at.flags(p)]! |= DUE;
  }

  /** The oldest waiter in one of the queues, or -1; of those that precede an age by the writer key, if there is one. */
  private oldest(state: Uint8Array, exclusive: boolean, age?: number): number {
    let oldest = -1;
    for (const p of this.exclusive.keys()) {
      if (this.exclusive[p] !== exclusive || !this.isQueued(state, p)) continue;
      if (age !== undefined && !(this.has(state, p, KEY) && this.precedes(state, p, age))) continue;
      if (oldest < 0 || this.older(state, p, oldest)) oldest = p;
    }
    return oldest;
  }

  private isQueued(state: Uint8Array, p: number): boolean {
    return this.phase(state, p) === QUEUED || this.phase(state, p) === DEAD_QUEUED;
  }

  private isDead(phase: number): boolean {
    return phase === DEAD_QUEUED || phase === GONE;
  }

  private isFree(state: Uint8Array): boolean {
    return !this.some((p) => this.isOnKey(state, p));
  }

  private isHeld(state: Uint8Array): boolean {
    return this.some((p) => this.phase(state, p) === HOLDS || this.phase(state, p) === DEAD_HOLDS);
  }

  private isString(state: Uint8Array): boolean {
    return this.some((p) => this.exclusive[p]! && this.isOnKey(state, p));
  }

  private isOnKey(state: Uint8Array, p: number): boolean {
    const phase = this.phase(state, p);
    return phase === HOLDS || phase === DEAD_HOLDS || this.has(state, p, RESERVED);
  }

  private older(state: Uint8Array, left: number, right: number): boolean {
    return this.score(state, left) < this.score(state, right);
  }

  /** Whether an exclusive waiter is as old as a shared one. */
  private precedes(state: Uint8Array, writer: number, since: number): boolean {
    const stands = this.has(state, writer, HAD);
    return state[stands ? at.stands(writer) : at.age(writer)]! <= since;
  }

  private score(state: Uint8Array, p: number): number {
    return state[at.score(p)]!;
  }

  private phase(state: Uint8Array, p: number): number {
    return state[at.phase(p)]!;
  }

  private has(state: Uint8Array, p: number, flag: number): boolean {
    return (state[at.flags(p)]! & flag) !== 0;
  }

  private some(test: (p: number) => boolean): boolean {
    for (let p = 0; p < this.exclusive.length; p += 1) if (test(p)) return true;
    return false;
  }

  /** Makes a process the youngest. */
  private join(next: Uint8Array, p: number): void {
    next[at.age(p)] = 32 - Math.clz32(this.ages(next) | 1);
  }

  /** All ages from this one on. */
  private agesFrom(state: Uint8Array, first: number): readonly number[] {
    const ages: number[] = [];
    for (let left = this.ages(state) >> first, age = first; left > 0; left >>= 1, age += 1)
      if (left & 1) ages.push(age);
    return ages;
  }

  /** The ages that occur, as bits. */
  private ages(state: Uint8Array): number {
    let ages = 0;
    for (const p of this.exclusive.keys()) for (const field of AGES) ages |= 1 << state[field(p)]!;
    return ages;
  }

  /** Gives a process this phase. It does not wait any more. */
  private set(next: Uint8Array, p: number, value: number): void {
    next.fill(0, at.phase(p), at.phase(p + 1));
    next[at.phase(p)] = value;
  }

  /** Only the order of ages matters. */
  private renumber(next: Uint8Array): void {
    const ages = this.ages(next) | 1;
    for (const p of this.exclusive.keys()) {
      for (const field of AGES) next[field(p)] = bitCount(ages & ((1 << next[field(p)]!) - 1));
    }
  }

  private emit(next: Uint8Array, step: Step, p: number, emit: Emit): void {
    for (const other of this.exclusive.keys()) {
      if (this.phase(next, other) === GONE && !this.has(next, other, RESERVED | KEY)) this.set(next, other, OUT);
    }
    this.renumber(next);
    if (this.options.sorted) sortRecords(next, { width: PROCESS, count: this.names.length, areAlike: this.areAlike });
    emit(next, steps.action(step, p));
  }

  readonly describe = (code: number): string => steps.describe(code, this.names);

  show(state: Uint8Array): string {
    const phases = ['-', 'waits', 'is woken', 'holds', 'crashed, in the queue', 'crashed', 'crashed, holds'];
    const flags = ['reserved', 'writer key', 'due', 'unheard'];
    const processes = this.names.map((process, p) => {
      const age = state[at.age(p)]!;
      const set = flags.filter((_, bit) => this.has(state, p, 1 << bit));
      const [score, stands] = [this.score(state, p), state[at.stands(p)]!];
      const ages = [
        age > 0 ? `#${age}` : '',
        score > age ? `queued as #${score}` : '',
        stands > age ? `its key as #${stands}` : '',
      ];
      return [process, phases[this.phase(state, p)]!, ...ages, ...set].filter((word) => word !== '').join(' ');
    });
    return processes.join(' | ');
  }
}
