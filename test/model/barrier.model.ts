import { type Emit } from './checker.js';
import { bitCount, StateModel, stepsOf } from './states.js';

/** A rule of section 11 that is left out. */
type BarrierWeakening =
  | 'barrier on the home master only'
  | 'a free key is granted in spite of `want`'
  /** Not a weakening but a stronger property: the quorum on which `want` stands may change during a request. */
  | 'any quorum at any time';

export interface BarrierOptions {
  readonly masters: 3 | 5;
  readonly readers: number;
  readonly without?: readonly BarrierWeakening[];
}

/** Readers that have a member here, and whether X has a string here and has written `want`. */
const [MEMBERS, STRING, WANT, MASTER] = [0, 1, 2, 3];

const PHASE = 0;
/** Masters that have answered the running request. */
const ASKED = 1;
/** Whether the request began while X waited. */
const LATER = 2;
/** Masters on which `want` has stood since the request began. */
const STOOD = 3;
const READER = 4;

const [OUT, WAITING, HOLDS] = [0, 1, 2];

const NAMES = 'STUV';

const steps = stepsOf({
  ask: (reader, master) => `${master} answers ${reader}`,
  'give up': (reader) => `${reader} gives up`,
  release: (reader) => `${reader} releases`,
  arrive: () => 'X begins to wait',
  want: (_, master) => `X writes \`want\` on ${master}`,
  take: (_, master) => `${master} grants to X`,
  'X releases': () => 'X releases',
  'give back': () => 'X gives its attempt up',
  expire: (_, master) => `\`want\` expires on ${master}`,
});
type Step = Parameters<typeof steps.action>[0];

/**
 * Protocol 11.6: a writer X that waits, and readers that come and go on N masters. There are no reservations and no wake-ups:
 * X asks whenever it likes, and `want` may expire at any time. A request that does not reach its quorum ends at once
 * everywhere, because what it leaves behind defers no reader.
 */
export class BarrierModel extends StateModel<BarrierOptions> {
  private readonly quorum: number;
  private readonly writer: number;
  private readonly broken: number;

  constructor(options: BarrierOptions) {
    const { masters, readers } = options;
    const writer = masters * MASTER + readers * READER;
    super(options, writer + 2);
    this.quorum = Math.floor(masters / 2) + 1;
    this.writer = writer;
    this.broken = writer + 1;
  }

  initial(): Uint8Array[] {
    return [new Uint8Array(this.width)];
  }

  violation(state: Uint8Array): string | undefined {
    if (state[this.writer] === HOLDS && this.readers(state).some((phase) => phase === HOLDS))
      return 'X and a reader hold';
    return state[this.broken] === 1 ? 'a reader that came later passes the waiting writer' : undefined;
  }

  successors(state: Uint8Array, emit: Emit): void {
    const { masters, readers } = this.options;
    for (let r = 0; r < readers; r += 1) {
      for (let m = 0; m < masters; m += 1) this.ask(state, { r, m }, emit);
      this.end(state, r, emit);
    }
    for (let m = 0; m < masters; m += 1) {
      this.want(state, m, emit);
      this.take(state, m, emit);
    }
    this.arrive(state, emit);
    this.giveBack(state, emit);
  }

  private ask(state: Uint8Array, { r, m }: { readonly r: number; readonly m: number }, emit: Emit): void {
    const at = this.reader(r);
    const master = m * MASTER;
    if (state[at + PHASE] === HOLDS || (state[at + ASKED]! & (1 << m)) !== 0) return;
    const next = this.copy(state);
    if (state[at + PHASE] === OUT) {
      next[at + PHASE] = WAITING;
      next[at + LATER] = state[this.writer] === WAITING ? 1 : 0;
      next[at + STOOD] = next[at + LATER] === 1 ? this.wanted(state) : 0;
    }
    next[at + ASKED]! |= 1 << m;
    const free = state[master + MEMBERS] === 0 && this.weak.has('a free key is granted in spite of `want`');
    const deferred = state[master + WANT] === 1 && next[at + LATER] === 1 && !free;
    if (state[master + STRING] === 0 && !deferred) next[master + MEMBERS]! |= 1 << r;
    let granted = 0;
    for (let other = 0; other < this.options.masters; other += 1) {
      granted += (next[other * MASTER + MEMBERS]! >> r) & 1;
    }
    if (granted >= this.quorum) {
      if (this.isBehind(next[at + STOOD]!)) next[this.broken] = 1;
      next.fill(0, at, at + READER);
      next[at + PHASE] = HOLDS;
    }
    this.emit(next, 'ask', emit, { r, m });
  }

  /** Whether `want` stands wherever the guarantee needs it. */
  private isBehind(stood: number): boolean {
    if (this.weak.has('barrier on the home master only')) return (stood & 1) === 1;
    return bitCount(stood) >= this.quorum;
  }

  private wanted(state: Uint8Array): number {
    let wanted = 0;
    for (let m = 0; m < this.options.masters; m += 1) wanted |= state[m * MASTER + WANT]! << m;
    return wanted;
  }

  private end(state: Uint8Array, r: number, emit: Emit): void {
    const at = this.reader(r);
    if (state[at + PHASE] === OUT) return;
    const next = this.copy(state);
    next.fill(0, at, at + READER);
    for (let m = 0; m < this.options.masters; m += 1) next[m * MASTER + MEMBERS]! &= ~(1 << r);
    this.emit(next, state[at + PHASE] === HOLDS ? 'release' : 'give up', emit, { r });
  }

  private arrive(state: Uint8Array, emit: Emit): void {
    if (state[this.writer] !== OUT) return;
    const next = this.copy(state);
    next[this.writer] = WAITING;
    this.emit(next, 'arrive', emit, {});
  }

  /** A poll that is refused by a set writes `want` on all masters, one after the other. */
  private want(state: Uint8Array, m: number, emit: Emit): void {
    const at = m * MASTER + WANT;
    const next = this.copy(state);
    if (state[at] === 1) {
      next[at] = 0;
      this.emit(next, 'expire', emit, { m });
      return;
    }
    const refused = this.someMaster((other) => state[other * MASTER + MEMBERS] !== 0);
    if (state[this.writer] !== WAITING || !refused) return;
    if (m > 0 && this.weak.has('barrier on the home master only')) return;
    next[at] = 1;
    this.emit(next, 'want', emit, { m });
  }

  private take(state: Uint8Array, m: number, emit: Emit): void {
    const master = m * MASTER;
    if (state[this.writer] !== WAITING || state[master + MEMBERS] !== 0 || state[master + STRING] === 1) return;
    const next = this.copy(state);
    next[master + STRING] = 1;
    let granted = 0;
    for (let other = 0; other < this.options.masters; other += 1) granted += next[other * MASTER + STRING]!;
    if (granted >= this.quorum) {
      next[this.writer] = HOLDS;
      for (let other = 0; other < this.options.masters; other += 1) next[other * MASTER + WANT] = 0;
      this.forget(next);
    }
    this.emit(next, 'take', emit, { m });
  }

  /** X releases, or gives its attempt up and waits on. */
  private giveBack(state: Uint8Array, emit: Emit): void {
    if (!this.someMaster((m) => state[m * MASTER + STRING] === 1)) return;
    const next = this.copy(state);
    for (let m = 0; m < this.options.masters; m += 1) next[m * MASTER + STRING] = 0;
    if (state[this.writer] === HOLDS) next[this.writer] = OUT;
    this.emit(next, state[this.writer] === HOLDS ? 'X releases' : 'give back', emit, {});
  }

  /** X does not wait any more: running requests have nothing to pass. */
  private forget(next: Uint8Array): void {
    for (let r = 0; r < this.options.readers; r += 1) next.fill(0, this.reader(r) + LATER, this.reader(r) + READER);
  }

  private emit(next: Uint8Array, step: Step, emit: Emit, { r = 0, m = 0 }: { r?: number; m?: number }): void {
    const wanted = this.wanted(next);
    for (let other = 0; other < this.options.readers; other += 1) {
      const at = this.reader(other) + STOOD;
      if (!this.weak.has('any quorum at any time')) next[at]! &= wanted;
      else if (!this.isBehind(wanted)) next[at] = 0;
    }
    emit(next, steps.action(step, r, m));
  }

  private someMaster(test: (m: number) => boolean): boolean {
    for (let m = 0; m < this.options.masters; m += 1) if (test(m)) return true;
    return false;
  }

  private readers(state: Uint8Array): number[] {
    return Array.from({ length: this.options.readers }, (_, r) => state[this.reader(r) + PHASE]!);
  }

  private reader(r: number): number {
    return this.options.masters * MASTER + r * READER;
  }

  describe(code: number): string {
    return steps.describe(code, NAMES);
  }

  show(state: Uint8Array): string {
    const masters = Array.from({ length: this.options.masters }, (_, m) => {
      const at = m * MASTER;
      const members = this.readers(state).flatMap((_, r) => ((state[at + MEMBERS]! >> r) & 1 ? [NAMES[r]!] : []));
      const key = state[at + STRING] === 1 ? 'X' : members.length > 0 ? `{${members.join(' ')}}` : '-';
      return `m${m + 1} ${key}${state[at + WANT] === 1 ? ' wanted' : ''}`;
    });
    const phases = ['-', 'asks', 'holds'];
    const readers = this.readers(state).map((phase, r) => {
      const later = state[this.reader(r) + LATER] === 1 ? ' later than X' : '';
      return `${NAMES[r]!} ${phases[phase]!}${later}`;
    });
    return [...masters, ...readers, `X ${['-', 'waits', 'holds'][state[this.writer]!]!}`].join(' | ');
  }
}
