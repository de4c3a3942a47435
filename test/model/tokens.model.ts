import { type Emit } from './checker.js';
import { bitCount, mastersWhere, StateModel, stepsOf } from './states.js';

export interface TokensOptions {
  readonly masters: 3 | 5;
  /** The key that each client locks; all keys share one counter. */
  readonly keys: readonly number[];
  readonly heals: number;
  readonly lostAnswers: number;
  readonly without?: readonly string[];
  /** Lost counters and differing clocks, in ticks. */
  readonly loss?: {
    readonly losses: number;
    readonly ticks: number;
    readonly quarantine: number;
    /** How far the clock of each master is ahead. */
    readonly ahead: readonly number[];
  };
  /** One undisturbed client: its token stands after this many rounds, whatever the counters are. */
  readonly rounds?: number;
}

const [COUNTER, QUARANTINE] = [0, 1];
/** For each key, the client that owns it plus one. */
const OWNERS = 2;

const [PHASE, GRANTED, DRAWN, LARGEST, CONFIRMED] = [0, 1, 2, 3, 4];
/** The largest token that stood when the client requested its own. */
const AFTER = 5;
/** Masters to which a heal was sent that has not been answered. */
const HEALING = 6;
const [EVER, CLIENT] = [7, 8];

const [ACQUIRING, HOLDING, ASKED, STANDS] = [0, 1, 2, 3];

/** Numbers that pass in one tick of a clock: more than the model draws in one tick. */
const PER_TICK = 8;

const NAMES = 'ABC';

const { action, describe } = stepsOf({
  acquire: (client, master) => `${master} grants to ${client}`,
  expire: (_, master, key) => `key ${key + 1} expires on ${master}`,
  heal: (client, master) => `${client} sends a heal to ${master}`,
  'set again': (client, master) => `the heal of ${client} sets its key again on ${master}`,
  unheard: (client, master) => `the heal of ${client} sets its key again on ${master}, and its answer is lost`,
  ask: (client) => `${client} asks for its token`,
  draw: (client, master) => `${master} answers ${client}`,
  lose: (client, master) => `${master} draws for ${client}, and its answer is lost`,
  loss: (_, master) => `${master} loses its data`,
  tick: () => 'a tick passes',
  all: () => 'a whole round is answered',
});

/**
 * Section 9. Keys expire at any time, as if no lease held, so the only time is that of the masters' clocks. A request and its
 * answer are one step, because a connection keeps the order of requests; a heal may be executed at any time after it was sent.
 */
export class TokensModel extends StateModel<TokensOptions> {
  private readonly quorum: number;
  private readonly masterWidth: number;
  private readonly heals: number;
  private readonly lost: number;
  private readonly losses: number;
  private readonly now: number;
  private readonly rounds: number;
  private readonly master = (m: number): number => m * this.masterWidth;
  private readonly owner = (c: number, m: number): number => this.master(m) + OWNERS + this.options.keys[c]!;
  private readonly client = (c: number): number => this.options.masters * this.masterWidth + c * CLIENT;

  constructor(options: TokensOptions) {
    const { masters, keys } = options;
    const masterWidth = OWNERS + Math.max(...keys) + 1;
    const heals = masters * masterWidth + keys.length * CLIENT;
    super(options, heals + 5);
    this.quorum = Math.floor(masters / 2) + 1;
    this.masterWidth = masterWidth;
    [this.heals, this.lost, this.losses, this.now, this.rounds] = [heals, heals + 1, heals + 2, heals + 3, heals + 4];
  }

  initial(): Uint8Array[] {
    const { heals, lostAnswers, loss, masters } = this.options;
    const state = new Uint8Array(this.width);
    state[this.heals] = heals;
    state[this.lost] = lostAnswers;
    state[this.losses] = loss?.losses ?? 0;
    if (this.options.rounds === undefined) return [state];
    // Every combination of small counters, with the lock held on all masters and the token requested.
    return Array.from({ length: 3 ** masters }, (_, combination) => {
      const begun = state.slice();
      for (let m = 0; m < masters; m += 1) {
        begun[this.master(m) + COUNTER] = Math.floor(combination / 3 ** m) % 3;
        begun[this.master(m) + OWNERS] = 1;
      }
      begun[this.client(0) + PHASE] = ASKED;
      return begun;
    });
  }

  violation(state: Uint8Array): string | undefined {
    const { keys, rounds } = this.options;
    if (rounds !== undefined && state[this.rounds]! >= rounds && state[this.client(0) + PHASE] !== STANDS) {
      return `no token stands after ${rounds} rounds`;
    }
    for (let c = 0; c < keys.length; c += 1) {
      const at = this.client(c);
      if (state[at + PHASE] !== STANDS) continue;
      if (state[at + LARGEST]! <= state[at + AFTER]!)
        return `the token of ${NAMES[c]!} is not larger than one before it`;
      for (let other = 0; other < c; other += 1) {
        const there = this.client(other);
        if (keys[other] !== keys[c] || state[there + PHASE] !== STANDS) continue;
        if (state[there + LARGEST] === state[at + LARGEST]) return `${NAMES[other]!} and ${NAMES[c]!} have one token`;
      }
    }
    return undefined;
  }

  successors(state: Uint8Array, emit: Emit): void {
    const { masters, keys } = this.options;
    if (this.options.rounds !== undefined) {
      this.wholeRound(state, emit);
      return;
    }
    for (let c = 0; c < keys.length; c += 1) {
      if (state[this.client(c) + PHASE] === STANDS) continue;
      this.ask(state, c, emit);
      for (let m = 0; m < masters; m += 1) {
        this.acquire(state, c, m, emit);
        this.heal(state, c, m, emit);
        this.draw(state, c, m, emit);
      }
    }
    for (let m = 0; m < masters; m += 1) {
      this.expire(state, m, emit);
      this.lose(state, m, emit);
    }
    this.tick(state, emit);
  }

  private acquire(state: Uint8Array, c: number, m: number, emit: Emit): void {
    const at = this.client(c);
    if (state[at + PHASE] !== ACQUIRING || state[this.owner(c, m)] !== 0) return;
    if (state[this.master(m) + QUARANTINE]! > 0 && !this.weak.has('answers of quarantined masters count')) return;
    const next = this.copy(state);
    next[this.owner(c, m)] = c + 1;
    next[at + GRANTED]! |= 1 << m;
    if (bitCount(next[at + GRANTED]!) >= this.quorum) {
      next[at + PHASE] = HOLDING;
      next[at + GRANTED] = 0;
    }
    emit(next, action('acquire', c, m));
  }

  /** Early expiry, expiry and release are the same to the other client. */
  private expire(state: Uint8Array, m: number, emit: Emit): void {
    for (let key = 0; key < this.masterWidth - OWNERS; key += 1) {
      if (state[this.master(m) + OWNERS + key] === 0) continue;
      const next = this.copy(state);
      next[this.master(m) + OWNERS + key] = 0;
      emit(next, action('expire', 0, m, key));
    }
  }

  /**
   * A heal is sent to a master, which leaves D, and is executed, now or later. Its answer may be lost.
   * Protocol 9.2 and 9.5.
   */
  private heal(state: Uint8Array, c: number, m: number, emit: Emit): void {
    const at = this.client(c);
    const bit = 1 << m;
    if (state[at + PHASE] === ACQUIRING) return;
    if (state[this.heals]! > 0 && (state[at + HEALING]! & bit) === 0) {
      const sent = this.copy(state);
      sent[this.heals]! -= 1;
      sent[at + HEALING]! |= bit;
      if (
        !this.weak.has('healed master stays in D') &&
        !this.weak.has('healed master stays in D, its counter raised')
      ) {
        sent[at + DRAWN]! &= ~bit;
        sent[at + CONFIRMED]! &= ~bit;
      }
      emit(sent, action('heal', c, m));
    }
    if ((state[at + HEALING]! & bit) === 0 || state[this.owner(c, m)] !== 0) return;
    if (state[this.master(m) + QUARANTINE]! > 0) return;
    const next = this.copy(state);
    next[this.owner(c, m)] = c + 1;
    const raised = this.weak.has('healed master stays in D, its counter raised');
    if (raised) next[this.master(m) + COUNTER] = Math.max(next[this.master(m) + COUNTER]!, next[at + LARGEST]!);
    emit(next, action('unheard', c, m));
    next[at + HEALING]! &= ~bit;
    emit(next, action('set again', c, m));
  }

  private ask(state: Uint8Array, c: number, emit: Emit): void {
    const at = this.client(c);
    if (state[at + PHASE] !== HOLDING) return;
    const next = this.copy(state);
    next[at + PHASE] = ASKED;
    next[at + AFTER] = this.largestStanding(state, c);
    emit(next, action('ask', c));
  }

  private largestStanding(state: Uint8Array, c: number): number {
    let largest = 0;
    for (let other = 0; other < this.options.keys.length; other += 1) {
      const at = this.client(other);
      if (this.options.keys[other] !== this.options.keys[c] || state[at + PHASE] !== STANDS) continue;
      largest = Math.max(largest, state[at + LARGEST]!);
    }
    return largest;
  }

  /** Whether a master is in D, or comes back into it, although its heal has not been answered. */
  private stays(state: Uint8Array, c: number, m: number): boolean {
    if (this.weak.has('a master comes back into D before its heal is answered')) return true;
    return (state[this.client(c) + DRAWN]! & (1 << m)) !== 0;
  }

  /** The request of a round reaches one master. */
  private draw(state: Uint8Array, c: number, m: number, emit: Emit): void {
    const at = this.client(c);
    if (state[at + PHASE] !== ASKED) return;
    if ((state[at + HEALING]! & (1 << m)) !== 0 && !this.stays(state, c, m)) return;
    if (state[this.owner(c, m)] !== c + 1 && !this.weak.has('draw without still-ours')) return;
    if (state[this.master(m) + QUARANTINE]! > 0 && !this.weak.has('answers of quarantined masters count')) return;
    const next = this.copy(state);
    const changed = this.answer(next, c, m);
    if (changed) emit(next, action('draw', c, m));
    // The draw happened, but the client does not know of it: the master is not in D.
    if (state[this.lost] === 0 || (state[at + DRAWN]! & (1 << m)) !== 0) return;
    const unheard = this.copy(state);
    unheard[this.master(m) + COUNTER] = this.drawn(state, c, m);
    unheard[this.lost]! -= 1;
    emit(unheard, action('lose', c, m));
  }

  /**
   * Applies an answer. Returns whether it is worth a step: an answer that changes nothing is not.
   * Protocol 9.1 and 9.3.
   */
  private answer(next: Uint8Array, c: number, m: number): boolean {
    const at = this.client(c);
    const bit = 1 << m;
    const counter = this.master(m) + COUNTER;
    const draws = this.drawsFirst(next, c, m);
    const before = next[counter]!;
    const confirmed = next[at + CONFIRMED]!;
    const value = draws ? this.drawn(next, c, m) : Math.max(before, next[at + LARGEST]!);
    next[counter] = value;
    if (draws) {
      next[at + DRAWN]! |= bit;
      if (this.weak.has('drawn once, confirmed anywhere')) next[at + EVER]! |= bit;
    }
    if (value > next[at + LARGEST]!) {
      next[at + LARGEST] = value;
      next[at + CONFIRMED] = 0;
    }
    if (value === next[at + LARGEST]) next[at + CONFIRMED]! |= bit;
    if (bitCount(next[at + CONFIRMED]!) >= this.quorum) next[at + PHASE] = STANDS;
    return draws || value !== before || next[at + CONFIRMED] !== confirmed;
  }

  // Protocol 9.2
  private drawsFirst(state: Uint8Array, c: number, m: number): boolean {
    const at = this.client(c);
    const bit = 1 << m;
    const drawn = state[at + DRAWN]!;
    if ((drawn & bit) !== 0) return false;
    if (this.weak.has('drawn once, confirmed anywhere')) return (state[at + EVER]! & bit) === 0;
    if (this.weak.has('confirm on any majority')) return bitCount(drawn) < this.quorum;
    return this.weak.has('confirm on draws of a minority') ? drawn === 0 : true;
  }

  /** The floor is the clock of the master, at the draw: Protocol 9.1 and 9.4. */
  private drawn(state: Uint8Array, c: number, m: number): number {
    const { loss } = this.options;
    const floor = loss && !this.weak.has('no floor') ? (state[this.now]! + loss.ahead[m]!) * PER_TICK : 0;
    return Math.max(state[this.master(m) + COUNTER]! + 1, floor, state[this.client(c) + LARGEST]!);
  }

  /** No client notices: D, confirmations and requests under way stay. */
  private lose(state: Uint8Array, m: number, emit: Emit): void {
    const { loss } = this.options;
    if (!loss || state[this.losses] === 0) return;
    const next = this.copy(state);
    next[this.losses]! -= 1;
    next.fill(0, this.master(m), this.master(m) + this.masterWidth);
    next[this.master(m) + QUARANTINE] = loss.quarantine;
    emit(next, action('loss', 0, m));
  }

  private tick(state: Uint8Array, emit: Emit): void {
    const { loss, masters } = this.options;
    if (!loss || state[this.now]! >= loss.ticks) return;
    const next = this.copy(state);
    next[this.now]! += 1;
    for (let m = 0; m < masters; m += 1) {
      if (next[this.master(m) + QUARANTINE]! > 0) next[this.master(m) + QUARANTINE]! -= 1;
    }
    emit(next, action('tick'));
  }

  private wholeRound(state: Uint8Array, emit: Emit): void {
    const at = this.client(0);
    if (state[at + PHASE] === STANDS || state[this.rounds]! >= this.options.rounds!) return;
    const next = this.copy(state);
    next[this.rounds]! += 1;
    if (this.weak.has('drawn anew in each round')) next[at + DRAWN] = 0;
    next[at + CONFIRMED] = 0;
    const sent = next[at + LARGEST]!;
    let largest = sent;
    for (let m = 0; m < this.options.masters; m += 1) {
      next[at + LARGEST] = sent;
      next[at + PHASE] = ASKED;
      this.answer(next, 0, m);
      largest = Math.max(largest, next[this.master(m) + COUNTER]!);
    }
    next[at + LARGEST] = largest;
    let confirmed = 0;
    for (let m = 0; m < this.options.masters; m += 1) confirmed += next[this.master(m) + COUNTER] === largest ? 1 : 0;
    next[at + CONFIRMED] = 0;
    next[at + PHASE] = confirmed >= this.quorum ? STANDS : ASKED;
    emit(next, action('all'));
  }

  readonly describe = (code: number): string => describe(code, NAMES);

  show(state: Uint8Array): string {
    const masters = Array.from({ length: this.options.masters }, (_, m) => {
      const at = this.master(m);
      const owners = [...state.slice(at + OWNERS, at + this.masterWidth)].map((c) => (c === 0 ? '-' : NAMES[c - 1]!));
      return `m${m + 1} ${owners.join('')} ${state[at + COUNTER]!}${state[at + QUARANTINE]! > 0 ? ' quarantined' : ''}`;
    });
    const clients = this.options.keys.map((_, c) => {
      const at = this.client(c);
      const phase = state[at + PHASE]!;
      if (phase === STANDS) return `${NAMES[c]!}'s token is ${state[at + LARGEST]!}`;
      if (phase === ASKED)
        return `${NAMES[c]!} T=${state[at + LARGEST]!} D=${mastersWhere(this.options.masters, (m) => ((state[at + DRAWN]! >> m) & 1) === 1)}`;
      return `${NAMES[c]!} ${phase === HOLDING ? 'holds' : '-'}`;
    });
    return [...masters, ...clients].join(' | ');
  }
}
