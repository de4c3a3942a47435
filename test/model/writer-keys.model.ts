import { type Emit } from './checker.js';
import { bitCount, StateModel, stepsOf } from './states.js';

export interface WriterKeysOptions {
  readonly masters: 3 | 5;
  readonly readers: number;
  readonly writers: number;
  readonly without?: readonly string[];
}

/** Readers that have a member here, the writer that has a string here, and the one whose writer key is here, plus one. */
const [MEMBERS, STRING, KEY, MASTER] = [0, 1, 2, 3];

const PHASE = 0;
/** Masters that have answered the running request. */
const ASKED = 1;
/** Writers that waited when the request began. */
const LATER = 2;
/** For each writer, the masters on which its key has stood since then. */
const STOOD = 3;

const [OUT, WAITING, HOLDS] = [0, 1, 2];

const READERS = 'STUV';
const WRITERS = 'XY';

const steps = stepsOf({
  ask: (reader, master) => `${master} answers ${reader}`,
  'give up': (reader) => `${reader} gives up`,
  release: (client) => `${client} releases`,
  arrive: (writer) => `${writer} begins to wait`,
  key: (writer, master) => `${writer} writes its writer key on ${master}`,
  take: (writer, master) => `${master} grants to ${writer}`,
  'give back': (writer) => `${writer} gives its attempt up`,
  expire: (_, master) => `the writer key expires on ${master}`,
});
type Step = Parameters<typeof steps.action>[0];

/**
 * Protocol 11.6: writers that wait, and readers that come and go on N masters. There are no reservations and no wake-ups: a
 * writer asks whenever it likes, and a writer key may expire at any time. A request that does not reach its quorum ends
 * at once everywhere, because what it leaves behind defers no reader.
 */
export class WriterKeysModel extends StateModel<WriterKeysOptions> {
  private readonly masters: readonly number[];
  private readonly readers: readonly number[];
  private readonly writers: readonly number[];
  private readonly quorum: number;
  private readonly readerWidth: number;
  private readonly broken: number;

  constructor(options: WriterKeysOptions) {
    const { masters, readers, writers } = options;
    const readerWidth = STOOD + writers;
    const broken = masters * MASTER + readers * readerWidth + writers;
    super(options, broken + 1);
    this.masters = indices(masters);
    this.readers = indices(readers);
    this.writers = indices(writers);
    this.quorum = Math.floor(masters / 2) + 1;
    this.readerWidth = readerWidth;
    this.broken = broken;
  }

  initial(): Uint8Array[] {
    return [new Uint8Array(this.width)];
  }

  violation(state: Uint8Array): string | undefined {
    const writers = this.writers.filter((w) => state[this.writer(w)] === HOLDS).length;
    const isRead = this.readers.some((r) => state[this.reader(r) + PHASE] === HOLDS);
    if (writers > 1 || (writers > 0 && isRead)) return 'a writer and another one hold';
    return state[this.broken] === 1 ? 'a reader that came later passes a waiting writer' : undefined;
  }

  successors(state: Uint8Array, emit: Emit): void {
    for (const r of this.readers) {
      for (const m of this.masters) this.ask(state, { r, m }, emit);
      this.end(state, r, emit);
    }
    for (const m of this.masters) this.expire(state, m, emit);
    for (const w of this.writers) {
      for (const m of this.masters) {
        this.writeKey(state, { w, m }, emit);
        this.take(state, { w, m }, emit);
      }
      this.arrive(state, w, emit);
      this.giveBack(state, w, emit);
    }
  }

  private ask(state: Uint8Array, { r, m }: { readonly r: number; readonly m: number }, emit: Emit): void {
    const at = this.reader(r);
    const master = m * MASTER;
    if (state[at + PHASE] === HOLDS || (state[at + ASKED]! & (1 << m)) !== 0) return;
    const next = this.copy(state);
    if (state[at + PHASE] === OUT) {
      next[at + PHASE] = WAITING;
      for (const w of this.writers) {
        if (state[this.writer(w)] !== WAITING) continue;
        next[at + LATER]! |= 1 << w;
        next[at + STOOD + w] = this.keysOf(state, w);
      }
    }
    next[at + ASKED]! |= 1 << m;
    const free = state[master + MEMBERS] === 0 && this.weak.has('a free key is granted in spite of the writer key');
    const deferred = ((next[at + LATER]! << 1) & (1 << state[master + KEY]!)) !== 0 && !free;
    if (state[master + STRING] === 0 && !deferred) next[master + MEMBERS]! |= 1 << r;
    const granted = this.masters.filter((other) => ((next[other * MASTER + MEMBERS]! >> r) & 1) === 1).length;
    if (granted >= this.quorum) {
      if (this.writers.some((w) => this.isKeptOut(next, r, w))) next[this.broken] = 1;
      next.fill(0, at, at + this.readerWidth);
      next[at + PHASE] = HOLDS;
    }
    this.emit(next, steps.action('ask', r, m), emit);
  }

  /** Whether a reader is behind a writer whose key stands wherever the guarantee needs it. */
  private isKeptOut(state: Uint8Array, r: number, w: number): boolean {
    const at = this.reader(r);
    if (((state[at + LATER]! >> w) & 1) === 0) return false;
    const both = this.weak.has('the keys of two writers make a quorum');
    const stood = both ? this.writers.map((one) => state[at + STOOD + one]!) : [state[at + STOOD + w]!];
    return this.isEnough(stood.reduce((all, one) => all | one, 0));
  }

  private isEnough(stood: number): boolean {
    if (this.weak.has('writer key on the home master only')) return (stood & 1) === 1;
    return bitCount(stood) >= this.quorum;
  }

  /** The masters on which the key of this writer stands. */
  private keysOf(state: Uint8Array, w: number): number {
    let keys = 0;
    for (const m of this.masters) if (state[m * MASTER + KEY] === w + 1) keys |= 1 << m;
    return keys;
  }

  private end(state: Uint8Array, r: number, emit: Emit): void {
    const at = this.reader(r);
    if (state[at + PHASE] === OUT) return;
    const next = this.copy(state);
    next.fill(0, at, at + this.readerWidth);
    for (const m of this.masters) next[m * MASTER + MEMBERS]! &= ~(1 << r);
    this.emit(next, steps.action(state[at + PHASE] === HOLDS ? 'release' : 'give up', r), emit);
  }

  private arrive(state: Uint8Array, w: number, emit: Emit): void {
    if (state[this.writer(w)] !== OUT) return;
    const next = this.copy(state);
    next[this.writer(w)] = WAITING;
    this.emit(next, this.action('arrive', w), emit);
  }

  /** A poll that is refused by a set writes the key on all masters, one after the other, where no other writer has it. */
  private writeKey(state: Uint8Array, { w, m }: { readonly w: number; readonly m: number }, emit: Emit): void {
    if (state[this.writer(w)] !== WAITING || state[m * MASTER + KEY] !== 0) return;
    if (!this.masters.some((other) => state[other * MASTER + MEMBERS] !== 0)) return;
    if (m > 0 && this.weak.has('writer key on the home master only')) return;
    const next = this.copy(state);
    next[m * MASTER + KEY] = w + 1;
    this.emit(next, this.action('key', w, m), emit);
  }

  private expire(state: Uint8Array, m: number, emit: Emit): void {
    if (state[m * MASTER + KEY] === 0) return;
    const next = this.copy(state);
    next[m * MASTER + KEY] = 0;
    this.emit(next, steps.action('expire', 0, m), emit);
  }

  private take(state: Uint8Array, { w, m }: { readonly w: number; readonly m: number }, emit: Emit): void {
    const master = m * MASTER;
    if (state[this.writer(w)] !== WAITING || state[master + MEMBERS] !== 0 || state[master + STRING] !== 0) return;
    const next = this.copy(state);
    next[master + STRING] = w + 1;
    if (this.strings(next, w) >= this.quorum) {
      next[this.writer(w)] = HOLDS;
      for (const other of this.masters) {
        if (next[other * MASTER + KEY] === w + 1) next[other * MASTER + KEY] = 0;
      }
      this.forget(next, w);
    }
    this.emit(next, this.action('take', w, m), emit);
  }

  /** A writer releases, or gives its attempt up and waits on. */
  private giveBack(state: Uint8Array, w: number, emit: Emit): void {
    if (this.strings(state, w) === 0) return;
    const next = this.copy(state);
    for (const m of this.masters) if (next[m * MASTER + STRING] === w + 1) next[m * MASTER + STRING] = 0;
    const holds = state[this.writer(w)] === HOLDS;
    if (holds) next[this.writer(w)] = OUT;
    this.emit(next, this.action(holds ? 'release' : 'give back', w), emit);
  }

  private strings(state: Uint8Array, w: number): number {
    return this.masters.filter((m) => state[m * MASTER + STRING] === w + 1).length;
  }

  /** This writer does not wait any more: running requests have nothing to pass. */
  private forget(next: Uint8Array, w: number): void {
    for (const r of this.readers) {
      next[this.reader(r) + LATER]! &= ~(1 << w);
      next[this.reader(r) + STOOD + w] = 0;
    }
  }

  private emit(next: Uint8Array, action: number, emit: Emit): void {
    for (const w of this.writers) {
      const keys = this.keysOf(next, w);
      for (const r of this.readers) {
        const at = this.reader(r) + STOOD + w;
        if (!this.weak.has('any quorum at any time')) next[at]! &= keys;
        else if (!this.isEnough(keys)) next[at] = 0;
      }
    }
    emit(next, action);
  }

  private action(step: Step, w: number, m = 0): number {
    return steps.action(step, READERS.length + w, m);
  }

  private reader(r: number): number {
    return this.options.masters * MASTER + r * this.readerWidth;
  }

  private writer(w: number): number {
    return this.reader(this.options.readers) + w;
  }

  readonly describe = (code: number): string => steps.describe(code, READERS + WRITERS);

  show(state: Uint8Array): string {
    const masters = this.masters.map((m) => {
      const at = m * MASTER;
      const members = this.readers.filter((r) => (state[at + MEMBERS]! >> r) & 1).map((r) => READERS[r]!);
      const key = WRITERS[state[at + STRING]! - 1] ?? (members.length > 0 ? `{${members.join(' ')}}` : '-');
      const writer = WRITERS[state[at + KEY]! - 1];
      return `m${m + 1} ${key}${writer === undefined ? '' : ` writer ${writer}`}`;
    });
    const readers = this.readers.map((r) => {
      const at = this.reader(r);
      const later = this.writers.filter((w) => (state[at + LATER]! >> w) & 1).map((w) => ` later than ${WRITERS[w]!}`);
      return `${READERS[r]!} ${['-', 'asks', 'holds'][state[at + PHASE]!]!}${later.join(' and')}`;
    });
    const writers = this.writers.map((w) => `${WRITERS[w]!} ${['-', 'waits', 'holds'][state[this.writer(w)]!]!}`);
    return [...masters, ...readers, ...writers].join(' | ');
  }
}

function indices(count: number): readonly number[] {
  return Array.from({ length: count }, (_, i) => i);
}
