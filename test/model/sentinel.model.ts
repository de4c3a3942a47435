import { type Emit } from './checker.js';
import { bitCount, decrement, StateModel, stepsOf } from './states.js';

/** A rule of Sentinel groups that is left out. */
type SentinelWeakening =
  | 'no view'
  | 'one sentinel confirms a vote'
  | 'one sentinel is enough for a marker'
  | 'a majority of the listed sentinels is enough'
  /** The address is compared, and not the epoch in which it was named. */
  | 'a view compares the address only';

// Protocol 13.1 and 13.2
export interface SentinelOptions {
  readonly sentinels: 1 | 3 | 5;
  /** How many of them each client lists: L the first ones, X the last ones. */
  readonly listed: number;
  readonly failovers: number;
  /** Ticks for which a key lives, and for which a client believes in a lock from the start of its round. */
  readonly ttl: number;
  /** H: the largest age of a view when a vote is sent, in ticks. */
  readonly viewAge: number;
  /** Ticks within which a vote must be answered. */
  readonly masterTimeout: number;
  /** The length of a quarantine, in ticks. */
  readonly wait: number;
  readonly without?: readonly SentinelWeakening[];
}

/** The client that also extends; the other one only acquires. */
const L = 0;
const CLIENTS = [0, 1];
const NAMES = ['L', 'X'];
/** The two servers: the address of epoch e is that of server e modulo 2. */
const SERVERS = [0, 1];
const SERVER = 4;
const [OWNER, EXPIRY, KNOWN, FROM] = [0, 1, 2, 3];
const CLIENT = 7;
const [BELIEF, ROUND, EPOCH, CONFIRMED, SENT, ASKED, ANSWERS] = [0, 1, 2, 3, 4, 5, 6];

const { action, describe } = stepsOf({
  tick: () => 'a tick passes',
  promote: (_, sentinel) => `${sentinel} promotes the replica`,
  hear: (_, sentinel) => `${sentinel} hears of a failover`,
  begin: (client) => `${client} sends a request`,
  vote: (client) => `the vote for ${client} counts`,
  mark: (client) => `${client} writes a marker`,
  answer: (client, sentinel) => `${sentinel} answers the view of ${client}`,
});

/**
 * A primary and its replica behind sentinels as the only master, and two clients. Ticks are whole, and clocks agree.
 *
 * A failover is one epoch. A sentinel names the address of one epoch, and goes on to higher ones only; when it hears of
 * them is open. The old primary acknowledges as long as it likes, and the promoted one lacks the lock, or has a copy of
 * it. The answers to a view come one by one, at any time.
 */
export class SentinelModel extends StateModel<SentinelOptions> {
  constructor(options: SentinelOptions) {
    super(options, options.sentinels + SERVERS.length * SERVER + CLIENTS.length * CLIENT);
  }

  initial(): Uint8Array[] {
    const state = new Uint8Array(this.width);
    state[this.server(0) + KNOWN] = 1;
    return [state];
  }

  violation(state: Uint8Array): string | undefined {
    const both = CLIENTS.every((c) => state[this.client(c) + BELIEF]! > 0);
    return both ? 'L and X both believe that they hold the lock' : undefined;
  }

  successors(state: Uint8Array, emit: Emit): void {
    this.failOver(state, emit);
    for (const c of CLIENTS) {
      this.begin(state, c, emit);
      this.vote(state, c, emit);
      this.mark(state, c, emit);
      this.view(state, c, emit);
    }
    this.tick(state, emit);
  }

  private failOver(state: Uint8Array, emit: Emit): void {
    const { sentinels, failovers, ttl } = this.options;
    const epochs = [...state.subarray(0, sentinels)];
    const newest = Math.max(...epochs);
    for (let s = 0; s < sentinels; s += 1) {
      // The leader promotes a replica of the primary that it names.
      if (epochs[s] === newest && newest < failovers) {
        const before = state[this.server(newest) + OWNER]!;
        for (const owner of new Set([0, before])) {
          const next = this.copy(state);
          next[s] = newest + 1;
          const promoted = this.server(newest + 1);
          next[promoted + OWNER] = owner;
          next[promoted + EXPIRY] = owner === 0 ? 0 : ttl;
          next[promoted + KNOWN] = 0;
          next[promoted + FROM] = 0;
          this.disconnect(next, newest - 1);
          emit(this.sorted(next), action('promote', 0, s));
        }
      }
      for (const epoch of new Set(epochs)) {
        if (epoch <= epochs[s]!) continue;
        const next = this.copy(state);
        next[s] = epoch;
        emit(this.sorted(next), action('hear', 0, s));
      }
    }
  }

  /** A server that comes back was a replica before: that closed its connections, and took longer than a view. */
  private disconnect(next: Uint8Array, epoch: number): void {
    for (const c of CLIENTS) {
      const at = this.client(c);
      if (next[at + EPOCH] === epoch) next[at + ROUND] = next[at + CONFIRMED] = 0;
      if (next[at + ASKED] === epoch) next[at + SENT] = next[at + ASKED] = next[at + ANSWERS] = 0;
    }
  }

  /** Sends an attempt or an extension. Its validity counts from here. */
  private begin(state: Uint8Array, c: number, emit: Emit): void {
    const at = this.client(c);
    if (state[at + ROUND] === this.options.ttl) return;
    if (c !== L && (state[at + BELIEF]! > 0 || state[at + ROUND]! > 0)) return;
    const next = this.copy(state);
    next[at + ROUND] = this.options.ttl;
    emit(next, action('begin', c));
  }

  /** The server to which the client is connected grants the request, and the vote counts. */
  private vote(state: Uint8Array, c: number, emit: Emit): void {
    const { ttl, viewAge } = this.options;
    const at = this.client(c);
    const server = this.server(state[at + EPOCH]!);
    const round = state[at + ROUND]!;
    if (round === 0 || state[server + KNOWN] === 0 || state[server + FROM]! > 0) return;
    const isConfirmed = this.viewAgeOf(state, c) - (ttl - round) <= viewAge;
    if (!isConfirmed && !this.weak.has('no view')) return;
    const owner = state[server + OWNER]!;
    if (owner !== 0 && (owner !== c + 1 || state[at + BELIEF] === 0)) return;
    const next = this.copy(state);
    next[server + OWNER] = c + 1;
    next[server + EXPIRY] = ttl;
    next[at + BELIEF] = round;
    next[at + ROUND] = 0;
    emit(next, action('vote', c));
  }

  /** Unknown data gets a marker, under a view that was sent before the data was read. */
  private mark(state: Uint8Array, c: number, emit: Emit): void {
    const server = this.server(state[this.client(c) + EPOCH]!);
    if (state[server + KNOWN] === 1 || this.viewAgeOf(state, c) > this.options.viewAge) return;
    const next = this.copy(state);
    next[server + KNOWN] = 1;
    next[server + FROM] = this.options.wait;
    emit(next, action('mark', c));
  }

  private view(state: Uint8Array, c: number, emit: Emit): void {
    const { sentinels } = this.options;
    const at = this.client(c);
    const epochs = [...state.subarray(0, sentinels)];
    for (let s = 0; s < sentinels; s += 1) {
      const answers = state[at + ANSWERS]! | (1 << s);
      if (!this.asks(c, s) || answers === state[at + ANSWERS]) continue;
      // The first answer comes at once: an earlier request would only make the view older.
      if (answers !== 1 << s && !this.isSame(epochs[s]!, state[at + ASKED]!)) continue;
      const next = this.copy(state);
      if (answers === 1 << s) {
        next[at + SENT] = 1;
        next[at + ASKED] = epochs[s]!;
      }
      next[at + ANSWERS] = answers;
      if (bitCount(answers) >= this.majority(next, c)) this.confirm(next, c);
      emit(this.sorted(next), action('answer', c, s));
    }
  }

  /** The client goes on over its connection, or opens a new one to the address that the view names. */
  private confirm(next: Uint8Array, c: number): void {
    const at = this.client(c);
    if (next[at + EPOCH] !== next[at + ASKED]) {
      next[at + ROUND] = 0;
      next[at + EPOCH] = next[at + ASKED]!;
    }
    next[at + CONFIRMED] = next[at + SENT]!;
    next[at + SENT] = next[at + ASKED] = next[at + ANSWERS] = 0;
  }

  /** The sentinels are alike as long as each client asks all of them: one order stands for all. */
  private sorted(state: Uint8Array): Uint8Array {
    const { sentinels } = this.options;
    if (this.weak.has('a majority of the listed sentinels is enough')) return state;
    const masks = CLIENTS.map((c) => this.client(c) + ANSWERS);
    const keys = Array.from({ length: sentinels }, (_, s) =>
      masks.reduce((key, mask) => key * 2 + ((state[mask]! >> s) & 1), state[s]!),
    ).sort((a, b) => a - b);
    for (const mask of masks) state[mask] = 0;
    keys.forEach((key, s) => {
      state[s] = key >> masks.length;
      masks.forEach((mask, c) => (state[mask]! |= ((key >> (masks.length - 1 - c)) & 1) << s));
    });
    return state;
  }

  private majority(state: Uint8Array, c: number): number {
    const { sentinels, listed } = this.options;
    const { weak } = this;
    const isKnown = state[this.server(state[this.client(c) + ASKED]!) + KNOWN] === 1;
    if (weak.has(isKnown ? 'one sentinel confirms a vote' : 'one sentinel is enough for a marker')) return 1;
    return Math.floor((weak.has('a majority of the listed sentinels is enough') ? listed : sentinels) / 2) + 1;
  }

  /** Clients also ask the sentinels that the listed ones know. */
  private asks(c: number, sentinel: number): boolean {
    const { sentinels, listed } = this.options;
    if (!this.weak.has('a majority of the listed sentinels is enough')) return true;
    return c === L ? sentinel < listed : sentinel >= sentinels - listed;
  }

  private isSame(named: number, asked: number): boolean {
    return this.weak.has('a view compares the address only') ? named % 2 === asked % 2 : named === asked;
  }

  /** Ticks since the last view that confirmed the connection was sent. */
  private viewAgeOf(state: Uint8Array, c: number): number {
    const confirmed = state[this.client(c) + CONFIRMED]!;
    return confirmed === 0 ? Infinity : confirmed - 1;
  }

  private tick(state: Uint8Array, emit: Emit): void {
    const next = this.copy(state);
    for (const s of SERVERS) {
      const server = this.server(s);
      if (decrement(next, server + EXPIRY) === 0) next[server + OWNER] = 0;
      decrement(next, server + FROM);
    }
    for (const c of CLIENTS) this.age(next, this.client(c));
    emit(this.sorted(next), action('tick'));
  }

  private age(next: Uint8Array, at: number): void {
    const { ttl, masterTimeout, viewAge } = this.options;
    const isHeld = next[at + BELIEF]! > 0;
    // An extension that is answered after the end of the old validity does not count.
    if (decrement(next, at + BELIEF) === 0 && isHeld) next[at + ROUND] = 0;
    const round = decrement(next, at + ROUND);
    if (ttl - round > masterTimeout) next[at + ROUND] = 0;
    for (const view of [CONFIRMED, SENT]) {
      if (next[at + view]! > 0) next[at + view]! += 1;
      if (next[at + view]! - 1 > viewAge + masterTimeout) next[at + view] = 0;
    }
    if (next[at + SENT] === 0) next[at + ASKED] = next[at + ANSWERS] = 0;
  }

  describe(code: number): string {
    return describe(code, NAMES, ['s1', 's2', 's3', 's4', 's5']);
  }

  show(state: Uint8Array): string {
    const named = [...state.subarray(0, this.options.sentinels)].map((epoch, s) => `s${s + 1} e${epoch}`).join(' ');
    const servers = SERVERS.map((s) => {
      const at = this.server(s);
      const key = state[at + OWNER] === 0 ? '-' : `${NAMES[state[at + OWNER]! - 1]!}/${state[at + EXPIRY]!}`;
      const known =
        state[at + KNOWN] === 0 ? 'unknown' : state[at + FROM]! > 0 ? `from +${state[at + FROM]!}` : 'votes';
      return `${'PQ'[s]!} ${key} ${known}`;
    });
    const clients = NAMES.map((name, c) => {
      const at = this.client(c);
      const view = state[at + CONFIRMED] === 0 ? 'no view' : `view ${state[at + CONFIRMED]! - 1} old`;
      const lock = state[at + BELIEF]! > 0 ? ` believes for ${state[at + BELIEF]!}` : '';
      return `${name} e${state[at + EPOCH]!}${lock}${state[at + ROUND]! > 0 ? ` asks/${state[at + ROUND]!}` : ''} ${view}`;
    });
    return [named, ...servers, ...clients].join(' | ');
  }

  private server(epoch: number): number {
    return this.options.sentinels + (epoch % 2) * SERVER;
  }

  private client(c: number): number {
    return this.options.sentinels + SERVERS.length * SERVER + c * CLIENT;
  }
}
