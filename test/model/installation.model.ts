import { type Emit } from './checker.js';
import { bitCount, decrement, StateModel, stepsOf } from './states.js';

// Protocol 10.2
export interface InstallationOptions {
  /** Of how many masters P knows the data at the start. With 0, no process is left that knew any. */
  readonly knows: number;
  /** How often each master may lose its data. With 0, the masters are new. */
  readonly losses: number;
  readonly without?: readonly (
    | 'no objection'
    | 'the masters are the first ones at once'
    | 'P writes the marker of lost data like one of new data, and objects to no marker of its own'
  )[];
}

const MASTERS = 3;
const ALL = 0b111;
const QUORUM = 2;
/** G, the time until P has connected to a master again and has objected, and W, all in ticks. */
const [WAIT, MEETS_WITHIN, YOUNG] = [2, 1, 4];

/** What the marker of a master says; 0 if there is none. */
const MARKER = 0;
/** Ticks until it votes. */
const FROM = 1;
/** Whether its data was lost since the value was set. */
const LOST = 2;
/** Whether P has met the present marker. */
const MET = 3;
/** Ticks in which P must meet it, plus one. */
const DUE = 4;
const [LOSSES, MASTER] = [5, 6];

const [LATER, EMPTY, FIRST] = [1, 2, 3];
const MARKERS = ['-', 'later', 'empty', 'first'];

/** For each of Q and P: whether it has seen all masters new, ticks left, and masters that it still calls the first. */
const [SIGHTED, LEFT, CALLS, CLIENT] = [0, 1, 2, 3];
const KNOWS = MASTERS * MASTER + 2 * CLIENT;
const SINCE = KNOWS + 1;

const [Q, P] = [0, 1];
const CLIENTS = ['Q', 'P'];

const { action, describe } = stepsOf({
  tick: () => 'a tick passes',
  lose: (_, master) => `${master} loses its data`,
  write: (client, master) => `${client} writes a marker ${master}`,
  meet: (client, master) => `${client} meets ${master}`,
  'see new': (client) => `${client} sees new`,
  'call first': (client, master) => `${client} calls first ${master}`,
  decide: (client) => `${client} decides`,
});

/**
 * Masters hold a value and lose it. P has known their data, and lives; Q is new. The masters must not look like the first
 * ones, which never had a value. `from`, votes and vetoes of locks are in `guard.model.ts`.
 */
export class InstallationModel extends StateModel<InstallationOptions> {
  private urgent = false;

  constructor(options: InstallationOptions) {
    super(options, SINCE + 1);
  }

  initial(): Uint8Array[] {
    const { knows, losses } = this.options;
    const state = new Uint8Array(this.width);
    state[KNOWS] = (1 << knows) - 1;
    for (let m = 0; m < MASTERS; m++) {
      state[m * MASTER + LOSSES] = losses;
      if (losses > 0) state.set([FIRST, 0, 0, 1], m * MASTER);
    }
    return [state];
  }

  violation(state: Uint8Array): string | undefined {
    const { losses } = this.options;
    const first = this.having((m) => state[m + MARKER] === FIRST);
    if (losses === 0)
      return state[SINCE]! > WAIT + 1 && first !== ALL ? 'new masters are not certain in time' : undefined;
    const lost = this.having((m) => state[m + LOST] === 1);
    return bitCount(first & lost) >= QUORUM ? 'the value is certainly absent' : undefined;
  }

  successors(state: Uint8Array, emit: Emit): void {
    this.urgent = false;
    const lives = this.options.knows > 0;
    for (let m = 0; m < MASTERS; m++) {
      this.lose(state, m, emit);
      this.write(state, Q, m, emit);
      if (lives) this.write(state, P, m, emit);
      if (lives) this.meet(state, m, emit);
    }
    this.welcome(state, Q, emit);
    this.tick(state, emit);
  }

  private lose(state: Uint8Array, m: number, emit: Emit): void {
    const at = m * MASTER;
    if (state[at + LOSSES] === 0) return;
    const next = this.copy(state);
    next[at + LOSSES]! -= 1;
    next.set([0, 0, 1, 0, MEETS_WITHIN + 1], at);
    // Another nonce: what was seen does not count, and a write that compares the marker fails.
    for (const c of [Q, P]) this.forget(next, c);
    emit(next, action('lose', 0, m));
  }

  private write(state: Uint8Array, c: number, m: number, emit: Emit): void {
    const at = m * MASTER;
    if (state[at + MARKER] !== 0) return;
    this.urgent = true;
    const next = this.copy(state);
    const knew =
      c === P &&
      (state[KNOWS]! & (1 << m)) !== 0 &&
      !this.weak.has('P writes the marker of lost data like one of new data, and objects to no marker of its own');
    next[at + MARKER] = knew ? LATER : EMPTY;
    next[at + FROM] = YOUNG;
    if (c === P) {
      next[at + MET] = 1;
      next[at + DUE] = 0;
      next[KNOWS]! |= 1 << m;
    }
    emit(next, action('write', c, m));
  }

  /** P connects again, and objects if it knew other data there. */
  private meet(state: Uint8Array, m: number, emit: Emit): void {
    const at = m * MASTER;
    if (state[at + MARKER] === 0 || state[at + MET] === 1) return;
    const next = this.copy(state);
    next[at + MET] = 1;
    next[at + DUE] = 0;
    const objects = (state[KNOWS]! & (1 << m)) !== 0 && !this.weak.has('no objection');
    if (objects) next[at + MARKER] = LATER;
    next[KNOWS]! |= 1 << m;
    emit(next, action('meet', P, m));
  }

  private welcome(state: Uint8Array, c: number, emit: Emit): void {
    const at = this.client(c);
    const young = this.having((m) => state[m + MARKER] === EMPTY && state[m + FROM]! > 0);
    const empty = this.having((m) => state[m + MARKER]! >= EMPTY);
    if (state[at + CALLS] !== 0) {
      for (let m = 0; m < MASTERS; m++) {
        if ((state[at + CALLS]! & (1 << m)) === 0) continue;
        this.urgent = true;
        const next = this.copy(state);
        next[at + CALLS]! &= ~(1 << m);
        // By compare-and-set: an objection that came first stands.
        if (state[m * MASTER + MARKER] === EMPTY) next[m * MASTER + MARKER] = FIRST;
        emit(next, action('call first', c, m));
      }
    } else if (state[at + SIGHTED] === 0 && young === ALL) {
      this.urgent = true;
      const next = this.copy(state);
      next[at + SIGHTED] = 1;
      next[at + LEFT] = this.weak.has('the masters are the first ones at once') ? 0 : WAIT;
      emit(next, action('see new', c));
    } else if (state[at + SIGHTED] === 1 && state[at + LEFT] === 0) {
      this.urgent = true;
      const next = this.copy(state);
      this.forget(next, c);
      if (empty === ALL) next[at + CALLS] = ALL;
      emit(next, action('decide', c));
    }
  }

  private forget(next: Uint8Array, c: number): void {
    next.fill(0, this.client(c), this.client(c) + CLIENT);
  }

  private tick(state: Uint8Array, emit: Emit): void {
    if (this.options.losses === 0 && this.urgent) return;
    const waits = this.having((m) => state[m + DUE] === 1 && state[m + MARKER] !== 0);
    if (waits !== 0 && this.options.knows > 0) return;
    const next = this.copy(state);
    for (let m = 0; m < MASTERS; m++) {
      decrement(next, m * MASTER + FROM);
      if (next[m * MASTER + MARKER] !== 0 && next[m * MASTER + DUE]! > 1) next[m * MASTER + DUE]! -= 1;
    }
    for (const c of [Q, P]) decrement(next, this.client(c) + LEFT);
    if (this.options.losses === 0 && next[SINCE]! <= WAIT + 1) next[SINCE]! += 1;
    emit(next, action('tick'));
  }

  describe(code: number): string {
    return describe(code, CLIENTS);
  }

  show(state: Uint8Array): string {
    return Array.from({ length: MASTERS }, (_, m) => {
      const at = m * MASTER;
      return `m${m + 1} ${MARKERS[state[at + MARKER]!]!}${state[at + LOST] === 1 ? ' lost' : ''}`;
    }).join(' | ');
  }

  private having(test: (at: number) => boolean): number {
    let mask = 0;
    for (let m = 0; m < MASTERS; m++) if (test(m * MASTER)) mask |= 1 << m;
    return mask;
  }

  private client(c: number): number {
    return MASTERS * MASTER + c * CLIENT;
  }
}
