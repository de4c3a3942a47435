import { type Emit } from './checker.js';
import { bitCount, decrement, StateModel, stepsOf } from './states.js';

export interface MaxTtlOptions {
  /** The ttl of A, which holds, and of S, which contends, in ticks. W of each client is its ttl. */
  readonly ttls: readonly [number, number];
  readonly losses: number;
  /** Whether the loss takes the data of all masters at the same instant. */
  readonly allAtOnce?: boolean;
  /** The initial state: A still has to raise the level, or all masters know it. */
  readonly level: 'to be raised' | 'known';
  /**
   * Where A must have confirmed its ttl before it uses it. `all twice`: a second round finds all data unchanged, so
   * there was an instant at which all masters had the level.
   */
  readonly use: 'all' | 'all twice' | 'quorum' | 'all, or a quorum that knew it before';
  /** For the last of these: whether a level that A itself raised counts as known before. */
  readonly ownRaiseCounts?: boolean;
  /** How many other masters with known data a client reads before it writes a marker for unknown data. */
  readonly sources: 1 | 2;
  /**
   * What a client does if it can read no other master with known data. `all unknown`: it writes only if all answer and
   * none knows.
   */
  readonly noSource: 'nothing' | 'own wait' | 'all unknown';
  /** While A believes, it contacts some master at least every this many ticks. */
  readonly contactEvery?: number;
  /** A reaches only m1 and m2. */
  readonly cutOff?: boolean;
  /**
   * Question d: levels that are not confirmed are forgotten. `refresh` is the greatest age of a confirmation that is
   * used.
   */
  readonly decay?: { readonly window: number; readonly refresh: number };
  readonly without?: readonly never[];
}

const [OWNER, EXPIRY, KNOWN, FROM, PREV, NEXT] = [0, 1, 2, 3, 4, 5];
/** Ticks since `since`, up to the window. */
const AGE = 6;
/** S's own wait before it writes without a source. 0: none, 1: over, more: ticks left plus one. */
const WAIT = 7;
const MASTER = 8;

const [BELIEF, ROUND, COUNTED] = [0, 1, 2];
/** Masters whose present data the client has met. */
const MET = 3;
const CONTACT = 4;
/** Masters that knew the level before A confirmed it. */
const BEFORE = 5;
/** Masters whose level A itself raised. */
const RAISED = 6;
/**
 * For each master, how long the confirmation of A remains valid; without decay, in how many rounds it was confirmed.
 */
const CONFIRMED = 7;

const [A, S] = [0, 1] as const;
const NAMES = ['A', 'S'];
const [MASTERS, QUORUM] = [3, 2];
const CLIENT = CONFIRMED + MASTERS;
const LOSSES = MASTERS * MASTER + 2 * CLIENT;

const { action, describe } = stepsOf({
  tick: () => 'a tick passes',
  begin: (client) => `${client} starts an attempt`,
  extend: (client) => `${client} starts an extension`,
  ask: (client, master) => `${master} grants to ${client}`,
  read: (client, master) => `${client} accepts the marker of ${master}`,
  confirm: (client, master) => `${client} confirms its level on ${master}`,
  write: (client, master) => `${client} writes a marker for ${master} with the level of another master`,
  notice: (client, master) => `${client} sees unknown data on ${master}, reads no known one, waits`,
  'write alone': (client, master) => `${client} writes a marker for ${master} with its own level`,
  loss: (_, master) => `${master} loses its data`,
  'all lost': () => 'all masters lose their data',
});

/** Protocol 8.3, 8.5 and 8.9 for clients with different ttls, and whether an old level may be forgotten. Three masters. */
export class MaxTtlModel extends StateModel<MaxTtlOptions> {
  constructor(options: MaxTtlOptions) {
    super(options, LOSSES + 1);
  }

  initial(): Uint8Array[] {
    const state = new Uint8Array(this.width);
    for (let m = 0; m < MASTERS; m += 1) {
      state[m * MASTER + KNOWN] = 1;
      const { ttls, level, decay } = this.options;
      state[m * MASTER + PREV] = level === 'known' ? ttls[A] : ttls[S];
      state[m * MASTER + NEXT] = state[m * MASTER + PREV]!;
      for (const c of [A, S]) state[client(c) + MET]! |= 1 << m;
      if (level !== 'known') continue;
      state[client(A) + CONFIRMED + m] = decay ? decay.refresh + 1 : this.rounds;
      state[client(A) + BEFORE]! |= 1 << m;
    }
    state[LOSSES] = this.options.losses;
    return [state];
  }

  violation(state: Uint8Array): string | undefined {
    const both = state[client(A) + BELIEF]! > 0 && state[client(S) + BELIEF]! > 0;
    return both ? 'A and S both believe that they hold the lock' : undefined;
  }

  successors(state: Uint8Array, emit: Emit): void {
    for (const c of [A, S]) {
      this.begin(state, c, emit);
      const reached = c === A && this.options.cutOff ? MASTERS - 1 : MASTERS;
      for (let m = 0; m < reached; m += 1) {
        this.ask(state, c, m, emit);
        this.read(state, c, m, emit);
        this.write(state, c, m, emit);
        if (c === A || this.options.decay) this.confirm(state, c, m, emit);
      }
    }
    for (let m = 0; m < MASTERS; m += 1) this.writeAlone(state, m, emit);
    this.lose(state, emit);
    this.tick(state, emit);
  }

  private begin(state: Uint8Array, c: number, emit: Emit): void {
    const at = client(c);
    if (c === S && (state[at + BELIEF]! > 0 || state[at + ROUND]! > 0)) return;
    if (c === A && !this.mayUse(state)) return;
    if (this.options.decay && !this.worthwhile(state, c)) return;
    const next = this.copy(state);
    next[at + ROUND] = this.options.ttls[c]!;
    next[at + COUNTED] = 0;
    if (c === A && state[at + BELIEF] === 0) next[at + CONTACT] = this.options.contactEvery ?? 0;
    emit(next, action(state[at + BELIEF]! > 0 ? 'extend' : 'begin', c));
  }

  /** Keeps states few: A takes new locks instead of extending one, and S acts only while A has something to lose. */
  private worthwhile(state: Uint8Array, c: number): boolean {
    const leasedKeys = state[client(A) + BELIEF]! > 0 || state[client(A) + ROUND]! > 0;
    return c === A ? !leasedKeys : leasedKeys;
  }

  // Protocol 8.9
  private mayUse(state: Uint8Array): boolean {
    const at = client(A);
    let confirmed = 0;
    let knew = 0;
    for (let m = 0; m < MASTERS; m += 1) {
      if (state[at + CONFIRMED + m]! < (this.options.decay ? 1 : this.rounds)) continue;
      confirmed += 1;
      knew += (state[at + BEFORE]! >> m) & 1;
    }
    if (this.options.use === 'quorum') return confirmed >= QUORUM;
    return confirmed === MASTERS || (this.options.use === 'all, or a quorum that knew it before' && knew >= QUORUM);
  }

  private ask(state: Uint8Array, c: number, m: number, emit: Emit): void {
    const at = client(c);
    const master = m * MASTER;
    const bit = 1 << m;
    if (state[at + ROUND] === 0 || (state[at + COUNTED]! & bit) !== 0) return;
    if ((state[at + MET]! & bit) === 0 || state[master + FROM]! > 0) return;
    const owner = state[master + OWNER]!;
    const extending = state[at + BELIEF]! > 0;
    if (owner !== 0 && (owner !== c + 1 || !extending)) return;
    const next = this.copy(state);
    next[master + OWNER] = c + 1;
    next[master + EXPIRY] = this.options.ttls[c]!;
    next[at + COUNTED]! |= bit;
    if (bitCount(next[at + COUNTED]!) >= QUORUM) {
      next[at + BELIEF] = next[at + ROUND]!;
      next[at + ROUND] = 0;
      next[at + COUNTED] = 0;
    }
    emit(next, action('ask', c, m));
  }

  private read(state: Uint8Array, c: number, m: number, emit: Emit): void {
    const at = client(c);
    if (state[m * MASTER + KNOWN] === 0 || (state[at + MET]! & (1 << m)) !== 0) return;
    const next = this.copy(state);
    next[at + MET]! |= 1 << m;
    // Data changed before the second round was over: the raise begins anew.
    if (c === A && this.rounds === 2 && !this.mayUse(state)) next.fill(0, at + CONFIRMED, at + CONFIRMED + MASTERS);
    emit(next, action('read', c, m));
  }

  /** Raises the level where it is smaller, and lengthens a running quarantine by the difference. */
  private confirm(state: Uint8Array, c: number, m: number, emit: Emit): void {
    const at = client(c);
    if ((state[at + MET]! & (1 << m)) === 0) return;
    const level = this.options.ttls[c]!;
    const { decay } = this.options;
    const master = m * MASTER;
    const next = this.copy(state);
    const before = effective(next, m);
    if (decay && next[master + AGE]! >= decay.window) {
      next[master + PREV] = next[master + NEXT]!;
      next[master + NEXT] = level;
      next[master + AGE] = 0;
    } else {
      next[master + NEXT] = Math.max(next[master + NEXT]!, level);
    }
    const after = effective(next, m);
    if (next[master + FROM]! > 0 && after > before) next[master + FROM]! += after - before;
    if (c === A) {
      next[at + CONFIRMED + m] = decay ? decay.refresh + 1 : this.round(state);
      if (before < level) next[at + RAISED]! |= 1 << m;
      const own = (next[at + RAISED]! & (1 << m)) !== 0 && !this.options.ownRaiseCounts;
      const knew = before >= level && !own;
      next[at + BEFORE] = knew ? next[at + BEFORE]! | (1 << m) : next[at + BEFORE]! & ~(1 << m);
      if (state[at + BELIEF]! > 0 || state[at + ROUND]! > 0) next[at + CONTACT] = this.options.contactEvery ?? 0;
    }
    emit(next, action('confirm', c, m));
  }

  /** The second round begins when the first has confirmed all masters. */
  private round(state: Uint8Array): number {
    const at = client(A) + CONFIRMED;
    return this.rounds === 2 && state[at]! > 0 && state[at + 1]! > 0 && state[at + 2]! > 0 ? 2 : 1;
  }

  private get rounds(): number {
    return this.options.use === 'all twice' ? 2 : 1;
  }

  /** Writes a marker for unknown data with the level of other masters, whose data is known and can be read. */
  private write(state: Uint8Array, c: number, m: number, emit: Emit): void {
    if (state[m * MASTER + KNOWN] === 1) return;
    const others = [(m + 1) % MASTERS, (m + 2) % MASTERS].filter((other) => state[other * MASTER + KNOWN] === 1);
    if (this.options.sources === 2) {
      if (others.length < 2) return;
      this.emitMarker(state, c, m, Math.max(effective(state, others[0]!), effective(state, others[1]!)), emit);
    } else {
      for (const other of others) this.emitMarker(state, c, m, effective(state, other), emit);
    }
  }

  private emitMarker(state: Uint8Array, c: number, m: number, read: number, emit: Emit): void {
    emit(this.marked(state, c, m, Math.max(read, this.options.ttls[c]!)), action('write', c, m));
  }

  private marked(state: Uint8Array, c: number, m: number, level: number): Uint8Array {
    const next = this.copy(state);
    const master = m * MASTER;
    next[master + KNOWN] = 1;
    next[master + FROM] = level;
    next[master + PREV] = level;
    next[master + NEXT] = level;
    next[master + AGE] = 0;
    next[master + WAIT] = 0;
    next[client(c) + MET]! |= 1 << m;
    return next;
  }

  /** S can read no master with known data: the others are cut off, or have lost their data, too. Protocol 8.3. */
  private writeAlone(state: Uint8Array, m: number, emit: Emit): void {
    const { noSource, ttls } = this.options;
    const master = m * MASTER;
    if (state[master + KNOWN] === 1 || noSource === 'nothing') return;
    if (noSource === 'own wait' && state[master + WAIT] === 0) {
      const next = this.copy(state);
      next[master + WAIT] = ttls[S] + 1;
      emit(next, action('notice', S, m));
      return;
    }
    if (noSource === 'own wait' && state[master + WAIT]! > 1) return;
    // What S saw of all masters may be old when it writes, unless it saw them after the loss.
    if (noSource === 'all unknown' && !this.options.allAtOnce) return;
    emit(this.marked(state, S, m, ttls[S]), action('write alone', S, m));
  }

  private lose(state: Uint8Array, emit: Emit): void {
    if (state[LOSSES] === 0) return;
    for (let m = 0; m < MASTERS; m += 1) {
      const next = this.copy(state);
      next[LOSSES]! -= 1;
      for (let lost = 0; lost < MASTERS; lost += 1) {
        if (lost !== m && !this.options.allAtOnce) continue;
        next.fill(0, lost * MASTER, (lost + 1) * MASTER);
        for (const c of [A, S]) next[client(c) + MET]! &= ~(1 << lost);
      }
      emit(next, action(this.options.allAtOnce ? 'all lost' : 'loss', 0, m));
      if (this.options.allAtOnce) return;
    }
  }

  private tick(state: Uint8Array, emit: Emit): void {
    const { contactEvery, decay } = this.options;
    const leasedKeys = state[client(A) + BELIEF]! > 0 || state[client(A) + ROUND]! > 0;
    if (contactEvery !== undefined && leasedKeys && state[client(A) + CONTACT] === 0) return;
    const next = this.copy(state);
    for (let m = 0; m < MASTERS; m += 1) {
      const master = m * MASTER;
      if (decrement(next, master + EXPIRY) === 0) next[master + OWNER] = 0;
      decrement(next, master + FROM);
      if (next[master + WAIT]! > 1) next[master + WAIT]! -= 1;
      if (decay && next[master + AGE]! < decay.window) next[master + AGE]! += 1;
      if (decay) decrement(next, client(A) + CONFIRMED + m);
    }
    for (const c of [A, S]) {
      const at = client(c);
      const held = next[at + BELIEF]! > 0;
      if (decrement(next, at + BELIEF) === 0 && held) next[at + ROUND] = 0;
      if (decrement(next, at + ROUND) === 0) next[at + COUNTED] = 0;
      decrement(next, at + CONTACT);
    }
    emit(next, action('tick'));
  }

  describe(code: number): string {
    return describe(code, NAMES);
  }

  show(state: Uint8Array): string {
    const masters = Array.from({ length: MASTERS }, (_, m) => {
      const at = m * MASTER;
      const key = state[at + OWNER] === 0 ? '-' : `${NAMES[state[at + OWNER]! - 1]!}/${state[at + EXPIRY]!}`;
      if (state[at + KNOWN] === 0) return `m${m + 1} ${key} unknown`;
      const levels = this.options.decay ? `${state[at + PREV]!},${state[at + NEXT]!}` : String(effective(state, m));
      return `m${m + 1} ${key} max ${levels}${state[at + FROM]! > 0 ? ` from +${state[at + FROM]!}` : ''}`;
    });
    const clients = NAMES.map((who, c) => {
      const belief = state[client(c) + BELIEF]!;
      if (belief > 0) return `${who} believes for ${belief}`;
      return state[client(c) + ROUND]! > 0 ? `${who} asks` : `${who} -`;
    });
    return [...masters, ...clients].join(' | ');
  }
}

function client(c: number): number {
  return MASTERS * MASTER + c * CLIENT;
}

function effective(state: Uint8Array, m: number): number {
  return Math.max(state[m * MASTER + PREV]!, state[m * MASTER + NEXT]!);
}
