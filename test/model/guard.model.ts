import { type Emit } from './checker.js';
import { bitCount, decrement, StateModel, stepsOf } from './states.js';

/** What can happen to the data of a master. */
const FAULTS = [
  /** A new process without data. */
  'empty restart',
  /** A new process with an old copy, such as a promoted replica: a key may show its full ttl once more. */
  'stale restart',
  /** The same process drops all keys. */
  'flush',
  /** Demoted and promoted again in one process: a new replid, the marker replicated back, keys granted meanwhile lost. */
  'failback',
  /** The address leads to an empty server that has been up for a long time. */
  'warm spare',
  /** The same, while the process before it still acknowledges the requests of the holder. */
  'two processes',
  /** All masters lose their data at the same instant. */
  'all lost',
  /** A new process with all of its data, and with its marker. */
  'kept restart',
  /** The address leads to an empty server; the data from before may return. */
  'spare',
  /** A new process with the data from before the spare. */
  'return',
  /** A new process with the data of a replica that lags, or of a file that was switched off: the marker is there. */
  'lagging copy',
  /** The same, and the server says that it was a replica. */
  'promoted replica',
] as const;
type Fault = (typeof FAULTS)[number];

/** A rule of section 8 that is left out. */
type GuardWeakening =
  | 'no replid in the identity'
  | 'replid compared at the handshake only'
  | 'uptime shortens the wait'
  | 'marker not checked in the voting script'
  | 'heal counts on a quarantined master'
  | 'extension of a present key counts on a quarantined master'
  | 'heals are not written on a quarantined master'
  | 'young marker replaced by a second wait'
  | 'early vote by a holder'
  | 'early vote seen on a quorum only'
  | 'early vote confirmed on a quorum only'
  | 'no veto'
  | 'no second reading'
  | 'a refused command counts as a contact'
  | 'marker whose `from` has passed counts as young'
  | 'attempt includes masters that vote later'
  | 'durability that is inferred, from `appendfsync` or a marker'
  | 'declared, and another nonce is known of the address'
  | 'a promoted replica of a declared master is trusted'
  /** Not a weakening but a question: a vote checks `from` only until the client has seen it pass for this nonce. */
  | 'from checked until it passed once';

export interface GuardOptions {
  readonly masters: 3 | 5;
  /** Ticks for which a key lives, and for which a client believes in a lock from the start of its round. */
  readonly ttl: number;
  /** W, in ticks. */
  readonly wait: number;
  readonly faults: readonly Fault[];
  /** The largest number of faults. */
  readonly maxFaults: number;
  readonly without?: readonly GuardWeakening[];
  /** Protocol 8.8: all masters are declared durable. `unmet`: a spare, or a promoted replica, may end before a process has met it. */
  readonly declared?: 'met' | 'unmet';
  /** Protocol 8.5 and 8.6: H and G, in ticks. Without it, no marker is set to vote early. */
  readonly early?: { readonly contactEvery: number; readonly wait: number };
  /** Whether the holder also writes markers for unknown data. */
  readonly holderWrites?: boolean;
  /**
   * Which attempt makes its client a witness and keeps it from an early vote: every attempt, an attempt that was sent
   * to at least one master believed able to vote, or an attempt that was sent to a quorum of them.
   */
  readonly attemptCounts?: 'always' | 'one' | 'quorum';
  /** The holder's attempt starts at once, and its lock is never extended: fewer states where that is enough. */
  readonly oneAttempt?: boolean;
  /** How many masters the holder has met at the start; by default all of them. */
  readonly holderKnows?: number;
  /** Masters start without data instead of with markers that both clients know. */
  readonly newMasters?: boolean;
  /** A client handles unknown data before the next tick, and `voting` masters must vote within `within` ticks. */
  readonly prompt?: { readonly within: number; readonly voting: number; readonly holder: boolean };
}

const [OWNER, EXPIRY] = [0, 1];
/** Nonce of the marker; 0 if there is no marker. */
const NONCE = 2;
/** Whether run and replid in the marker are those of the server, that is, whether the data is known. */
const KNOWN = 3;
const [FROM, VETOED, HISTORY] = [4, 5, 6];
/** Nonce of a marker that another run has left; 0 if there is none, or if the data is known. */
const LEFT = 7;
/** What the data from before a spare has: nonce, owner and expiry. */
const ASIDE = 8;
const MASTER = 11;

/** Bits of HISTORY: the holder's key was here; the process is old; the process before it still acknowledges. */
const [HELD, OLD, TWIN, PROMOTED] = [1, 2, 4, 8];

const KEEPING: readonly Fault[] = ['kept restart', 'spare', 'return', 'lagging copy', 'promoted replica'];

const PHASE = 0;
/** Ticks for which the client still believes in its lock. */
const BELIEF = 1;
/** Ticks of validity that the running attempt or extension can still yield. */
const ROUND = 2;
/** Masters that count for the round. */
const COUNTED = 3;
/** Ticks within which a witness must complete its next contact. */
const CONTACT = 4;
const [EARLY, EARLY_LEFT, EARLY_MASK] = [5, 6, 7];
/** Masters whose last reading showed that they vote. */
const ABLE = 8;
/** Masters to which the attempt was sent. */
const SENT = 9;
const WITNESS = 10;
/** Masters whose `from` the client has seen pass. */
const PASSED = 11;
/** The nonces that the client has accepted, one for each master. */
const NONCES = 12;

const [IDLE, ACTIVE] = [0, 1];

const [FIRST_READING, WAITING, SECOND_READING, WRITING, GIVEN_UP] = [1, 2, 3, 4, 5];

const [HOLDER, CONTENDER] = [0, 1];
const CLIENTS = ['L', 'X'];

const INITIAL_NONCE = 1;

const { action, describe } = stepsOf({
  tick: () => 'a tick passes',
  acquire: (client) => `${client} starts an attempt`,
  extend: (client) => `${client} starts an extension`,
  grant: (client, master) => `${master} grants ${client}'s attempt`,
  'extend key': (client, master) => `${master} extends ${client}'s key`,
  'set again': (client, master) => `${master} sets again ${client}'s key`,
  read: (client, master) => `${client} reads the marker of ${master}`,
  write: (client, master) => `${client} writes a marker for the unknown data of ${master}`,
  rename: (client, master) => `${client} takes the data of ${master}, which is declared durable, for known`,
  contact: (client, master) => `${master} refuses a command of ${client}`,
  'read again': (client, master) => `${client} reads ${master} a second time`,
  'vote early': (client, master) => `${client} lets ${master} vote early`,
  'all lost': () => 'all masters lose their data',
  fault: (_, master, fault) => `${master}: ${FAULTS[fault]!}`,
  'stale key': (_, master, fault) => `${master}: ${FAULTS[fault]!} with an old copy of L's key`,
});

/**
 * Section 8: a holder L, a contender X, and N masters whose data changes behind their addresses. Ticks are whole, and
 * clocks agree.
 */
export class GuardModel extends StateModel<GuardOptions> {
  private readonly quorum: number;
  private readonly all: number;
  private readonly clientWidth: number;
  private readonly faultsLeft: number;
  private readonly since: number;
  private urgent = false;

  constructor(options: GuardOptions) {
    const { masters } = options;
    // Beside the nonces of the present sessions, those that were accepted last.
    const clientWidth = NONCES + 2 * masters;
    const faultsLeft = masters * MASTER + 2 * clientWidth;
    super(options, faultsLeft + 2);
    this.quorum = Math.floor(masters / 2) + 1;
    this.all = (1 << masters) - 1;
    this.clientWidth = clientWidth;
    this.faultsLeft = faultsLeft;
    this.since = faultsLeft + 1;
  }

  initial(): Uint8Array[] {
    const state = new Uint8Array(this.width);
    state[this.faultsLeft] = this.options.maxFaults;
    if (this.options.newMasters) return [state];
    for (let m = 0; m < this.options.masters; m += 1) {
      state[m * MASTER + NONCE] = INITIAL_NONCE;
      state[m * MASTER + KNOWN] = 1;
      for (const c of [HOLDER, CONTENDER]) {
        if (c === HOLDER && m >= (this.options.holderKnows ?? this.options.masters)) continue;
        state[this.client(c) + NONCES + m] = INITIAL_NONCE;
        if (this.keepsData) state[this.last(c, m)] = INITIAL_NONCE;
        if (this.remembersWhoVotes) state[this.client(c) + ABLE]! |= 1 << m;
        if (this.passedOnce) state[this.client(c) + PASSED]! |= 1 << m;
      }
    }
    if (!this.options.oneAttempt) return [state];
    const begun: Uint8Array[] = [];
    this.begin(state, HOLDER, (next) => begun.push(next.slice()));
    return begun;
  }

  violation(state: Uint8Array): string | undefined {
    const { prompt } = this.options;
    if (prompt && state[this.since]! > prompt.within) {
      let voting = 0;
      for (let m = 0; m < this.options.masters; m += 1) voting += this.votes(state, m) ? 1 : 0;
      if (voting < prompt.voting) return `only ${voting} masters vote after ${prompt.within} ticks`;
    }
    const both = state[this.client(HOLDER) + BELIEF]! > 0 && state[this.client(CONTENDER) + BELIEF]! > 0;
    return both ? 'L and X both believe that they hold the lock' : undefined;
  }

  successors(state: Uint8Array, emit: Emit): void {
    const { prompt } = this.options;
    this.urgent = false;
    for (const c of [HOLDER, CONTENDER]) {
      if (c === HOLDER && prompt && !prompt.holder) continue;
      this.clientSteps(state, c, emit);
    }
    this.faults(state, emit);
    this.tick(state, emit);
  }

  private clientSteps(state: Uint8Array, c: number, emit: Emit): void {
    if (c === CONTENDER || !this.options.oneAttempt) this.begin(state, c, emit);
    for (let m = 0; m < this.options.masters; m += 1) {
      this.ask(state, c, m, emit);
      this.read(state, c, m, emit);
      if (c === CONTENDER || this.options.holderWrites) this.write(state, c, m, emit);
      if (this.keepsData) this.rename(state, c, m, emit);
      if (this.options.early) {
        this.refusedContact(state, c, m, emit);
        this.readAgain(state, c, m, emit);
        this.voteEarly(state, c, m, emit);
      }
    }
  }

  /** Starts an attempt, or the extension of a lock. Its validity counts from here. */
  private begin(state: Uint8Array, c: number, emit: Emit): void {
    const at = this.client(c);
    const phase = state[at + PHASE]!;
    const { ttl, attemptCounts = 'always', early } = this.options;
    if (phase === ACTIVE) {
      // Only the holder extends: the end of a lock of X breaks no property.
      if (c === HOLDER && state[at + BELIEF]! > 0 && !this.options.oneAttempt) {
        const next = this.copy(state);
        next[at + ROUND] = ttl;
        next[at + COUNTED] = 0;
        emit(next, action('extend', c));
      }
      return;
    }
    if (phase !== IDLE || this.options.prompt?.holder === false) return;
    const able = state[at + ABLE]!;
    if (attemptCounts !== 'always' && able === 0 && !this.weak.has('attempt includes masters that vote later')) return;
    const next = this.copy(state);
    next[at + PHASE] = ACTIVE;
    next[at + ROUND] = ttl;
    if (this.remembersWhoVotes) next[at + SENT] = able;
    const counts = attemptCounts === 'always' || bitCount(able) >= (attemptCounts === 'one' ? 1 : this.quorum);
    if (early && counts) {
      next[at + WITNESS] = 1;
      next[at + CONTACT] = early.contactEvery;
      // Votes that were sent before the attempt are still on their way.
      if (!this.weak.has('early vote by a holder') && next[at + EARLY] !== WRITING) this.stopEarly(next, at);
    }
    emit(next, action('acquire', c));
  }

  /** One request of the running round reaches a master and is answered. */
  private ask(state: Uint8Array, c: number, m: number, emit: Emit): void {
    const at = this.client(c);
    const master = m * MASTER;
    const bit = 1 << m;
    if (state[at + ROUND] === 0 || (state[at + COUNTED]! & bit) !== 0) return;
    const extending = state[at + BELIEF]! > 0;
    if (c === CONTENDER && extending) return;
    if (this.remembersWhoVotes && !extending && (state[at + SENT]! & bit) === 0) {
      if (!this.weak.has('attempt includes masters that vote later')) return;
    }
    if (extending && (state[master + HISTORY]! & TWIN) !== 0) {
      const next = this.copy(state);
      this.count(next, c, bit);
      emit(next, action(state[master + OWNER] === 0 ? 'set again' : 'extend key', c, m));
      return;
    }
    const accepted = state[at + NONCES + m]!;
    const unchecked = this.weak.has('marker not checked in the voting script');
    // Protocol 8.1
    if (accepted === 0 || (accepted !== state[master + NONCE] && !unchecked)) return;
    const young = state[master + FROM]! > 0 && !unchecked && (state[at + PASSED]! & bit) === 0;
    const owner = state[master + OWNER]!;
    const self = c + 1;
    let counts = !young;
    if (!extending) {
      if (young || owner !== 0) return;
    } else {
      if (owner !== 0 && owner !== self) return;
      // Protocol 8.7
      if (young && owner === 0) {
        if (this.weak.has('heals are not written on a quarantined master')) return;
        counts = this.weak.has('heal counts on a quarantined master');
      }
      if (young && owner === self) {
        counts = this.weak.has('extension of a present key counts on a quarantined master');
      }
    }
    const next = this.copy(state);
    next[master + OWNER] = self;
    next[master + EXPIRY] = this.options.ttl;
    if (c === HOLDER && this.options.faults.includes('stale restart')) next[master + HISTORY]! |= HELD;
    if (counts) this.count(next, c, bit);
    emit(next, action(!extending ? 'grant' : owner === 0 ? 'set again' : 'extend key', c, m));
  }

  private count(next: Uint8Array, c: number, bit: number): void {
    const at = this.client(c);
    next[at + COUNTED]! |= bit;
    if (bitCount(next[at + COUNTED]!) < this.quorum) return;
    next[at + BELIEF] = next[at + ROUND]!;
    next[at + ROUND] = 0;
    next[at + COUNTED] = 0;
    next[at + SENT] = 0;
    const { early } = this.options;
    if (early && next[at + WITNESS] === 0) {
      next[at + WITNESS] = 1;
      next[at + CONTACT] = early.contactEvery;
      if (next[at + EARLY] !== WRITING) this.stopEarly(next, at);
    }
  }

  /**
   * Reads run, replid and marker in one script, and accepts known data. For a witness this is a contact.
   * Protocol 8.2.
   */
  private read(state: Uint8Array, c: number, m: number, emit: Emit): void {
    const at = this.client(c);
    const master = m * MASTER;
    const known = state[master + KNOWN] === 1;
    const witness = state[at + WITNESS] === 1;
    if (!known && !witness) return;
    const next = this.copy(state);
    if (known) {
      const young = state[master + FROM]! > 0;
      const news = state[at + NONCES + m] !== state[master + NONCE];
      if (news) this.accept(next, c, m);
      this.remember(next, c, m);
      const counts = young || this.weak.has('marker whose `from` has passed counts as young');
      // Protocol 8.5
      if (witness && counts && this.vetoes) next[master + VETOED] = 1;
      if (news) this.urgent = true;
      if (this.seeYoung(next, c, m)) this.urgent = true;
    }
    if (witness) next[at + CONTACT] = this.options.early!.contactEvery;
    emit(next, action('read', c, m));
  }

  /** Protocol 8.8. */
  private rename(state: Uint8Array, c: number, m: number, emit: Emit): void {
    const master = m * MASTER;
    const left = state[master + LEFT]!;
    const last = state[this.last(c, m)]!;
    if (
      left === 0 ||
      (!this.options.declared && !this.weak.has('durability that is inferred, from `appendfsync` or a marker'))
    )
      return;
    if (last !== 0 && last !== left && !this.weak.has('declared, and another nonce is known of the address')) return;
    const promoted = (state[master + HISTORY]! & PROMOTED) !== 0;
    if (promoted && !this.weak.has('a promoted replica of a declared master is trusted')) return;
    const next = this.copy(state);
    next[master + KNOWN] = 1;
    next[master + NONCE] = left;
    next[master + LEFT] = 0;
    this.accept(next, c, m);
    emit(next, action('rename', c, m));
  }

  /** Protocol 8.3. The write compares the marker with what was read, so reading and writing are one step. */
  private write(state: Uint8Array, c: number, m: number, emit: Emit): void {
    const master = m * MASTER;
    const young = state[master + FROM]! > 0;
    const again = this.weak.has('young marker replaced by a second wait') && young;
    // Protocol 8.4
    if (state[master + KNOWN] === 1 && !again) return;
    const next = this.copy(state);
    next[master + KNOWN] = 1;
    next[master + NONCE] = this.freshNonce(state, m);
    next[master + LEFT] = 0;
    const old = (state[master + HISTORY]! & OLD) !== 0 && this.weak.has('uptime shortens the wait');
    next[master + FROM] = old ? 0 : this.options.wait;
    next[master + VETOED] = state[this.client(c) + WITNESS] === 1 && this.vetoes ? 1 : 0;
    this.accept(next, c, m);
    this.remember(next, c, m);
    this.seeYoung(next, c, m);
    if (!again) this.urgent = true;
    emit(next, action('write', c, m));
  }

  /**
   * A command that is refused because of a foreign nonce: the client has heard from the master but has read no marker.
   */
  private refusedContact(state: Uint8Array, c: number, m: number, emit: Emit): void {
    const at = this.client(c);
    if (!this.weak.has('a refused command counts as a contact') || state[at + WITNESS] === 0) return;
    if (state[at + NONCES + m] === state[m * MASTER + NONCE]) return;
    const next = this.copy(state);
    next[at + CONTACT] = this.options.early!.contactEvery;
    emit(next, action('contact', c, m));
  }

  /**
   * Notes a young marker for Protocol 8.6. The wait of G begins once all of them are noted. Returns whether this changed
   * anything.
   */
  private seeYoung(next: Uint8Array, c: number, m: number): boolean {
    const { early } = this.options;
    const at = this.client(c);
    const phase = next[at + EARLY]!;
    if (!early || phase > FIRST_READING || !this.mayVoteEarly(next, c)) return false;
    const bit = 1 << m;
    const before = next[at + EARLY_MASK]!;
    const young = next[m * MASTER + FROM]! > 0 || this.weak.has('marker whose `from` has passed counts as young');
    const mask = young ? before | bit : before & ~bit;
    next[at + EARLY_MASK] = mask;
    next[at + EARLY] = mask === 0 ? 0 : FIRST_READING;
    const needed = this.weak.has('early vote seen on a quorum only') ? this.quorum : this.options.masters;
    if (bitCount(mask) >= needed) {
      next[at + EARLY] = WAITING;
      next[at + EARLY_LEFT] = early.wait;
    }
    return mask !== before;
  }

  private readAgain(state: Uint8Array, c: number, m: number, emit: Emit): void {
    const at = this.client(c);
    const phase = state[at + EARLY]!;
    const waited = phase === WAITING && state[at + EARLY_LEFT] === 0;
    if (!waited && phase !== SECOND_READING) return;
    const bit = 1 << m;
    const mask = phase === SECOND_READING ? state[at + EARLY_MASK]! : 0;
    const seen = state[at + EARLY_MASK]!;
    if ((mask & bit) !== 0 || this.weak.has('no second reading')) return;
    if (phase === WAITING && (seen & bit) === 0) return;
    this.urgent = true;
    const next = this.copy(state);
    if (this.unchanged(state, c, m)) {
      next[at + EARLY] = SECOND_READING;
      next[at + EARLY_MASK] = mask | bit;
      const fewer =
        this.weak.has('early vote seen on a quorum only') || this.weak.has('early vote confirmed on a quorum only');
      if (bitCount(mask | bit) >= (fewer ? this.quorum : this.options.masters)) {
        next[at + EARLY] = WRITING;
        next[at + EARLY_MASK] = this.all;
      }
    } else {
      this.stopEarly(next, at);
      next[at + EARLY] = GIVEN_UP;
    }
    emit(next, action('read again', c, m));
  }

  // Protocol 8.6
  private voteEarly(state: Uint8Array, c: number, m: number, emit: Emit): void {
    const at = this.client(c);
    const phase = state[at + EARLY]!;
    const hasty = this.weak.has('no second reading') && phase === WAITING && state[at + EARLY_LEFT] === 0;
    if (phase !== WRITING && !hasty) return;
    const bit = 1 << m;
    if ((state[at + EARLY_MASK]! & bit) === 0) return;
    this.urgent = true;
    const next = this.copy(state);
    if (hasty) next[at + EARLY] = WRITING;
    const mask = state[at + EARLY_MASK]! & ~bit;
    next[at + EARLY_MASK] = mask;
    if (mask === 0) next[at + EARLY] = GIVEN_UP;
    if (this.unchanged(state, c, m)) next[m * MASTER + FROM] = 0;
    this.remember(next, c, m);
    emit(next, action('vote early', c, m));
  }

  private unchanged(state: Uint8Array, c: number, m: number): boolean {
    const master = m * MASTER;
    const young = state[master + FROM]! > 0 || this.weak.has('marker whose `from` has passed counts as young');
    const same = state[master + NONCE] === state[this.client(c) + NONCES + m] && state[master + KNOWN] === 1;
    return same && young && state[master + VETOED] === 0;
  }

  private mayVoteEarly(state: Uint8Array, c: number): boolean {
    // Only the holder votes early, so that the fault is its own vote and not that of X.
    if (this.weak.has('early vote by a holder')) return c === HOLDER;
    return state[this.client(c) + WITNESS] === 0;
  }

  private stopEarly(next: Uint8Array, at: number): void {
    next[at + EARLY] = 0;
    next[at + EARLY_LEFT] = 0;
    next[at + EARLY_MASK] = 0;
  }

  private accept(next: Uint8Array, c: number, m: number): void {
    const at = this.client(c);
    next[at + NONCES + m] = next[m * MASTER + NONCE]!;
    if (this.keepsData) next[this.last(c, m)] = next[m * MASTER + NONCE]!;
    next[at + SENT]! &= ~(1 << m);
    next[at + PASSED]! &= ~(1 << m);
    if (next[at + EARLY]! >= WAITING) this.stopEarly(next, at);
  }

  private remember(next: Uint8Array, c: number, m: number): void {
    const at = this.client(c);
    const bit = 1 << m;
    const voting = next[m * MASTER + FROM] === 0;
    if (this.remembersWhoVotes) next[at + ABLE] = voting ? next[at + ABLE]! | bit : next[at + ABLE]! & ~bit;
    if (this.passedOnce && voting) next[at + PASSED]! |= bit;
  }

  private faults(state: Uint8Array, emit: Emit): void {
    if (state[this.faultsLeft] === 0) return;
    for (const fault of this.options.faults) {
      if (fault === 'all lost') {
        const next = this.hit(state);
        for (let m = 0; m < this.options.masters; m += 1) this.empty(next, m, 'empty restart');
        emit(next, action('all lost'));
        continue;
      }
      for (let m = 0; m < this.options.masters; m += 1) {
        if (KEEPING.includes(fault)) {
          this.keep(state, m, fault, emit);
          continue;
        }
        const next = this.hit(state);
        this.empty(next, m, fault);
        emit(next, action('fault', 0, m, FAULTS.indexOf(fault)));
        if ((fault === 'stale restart' || fault === 'failback') && (state[m * MASTER + HISTORY]! & HELD) !== 0) {
          next[m * MASTER + OWNER] = HOLDER + 1;
          next[m * MASTER + EXPIRY] = this.options.ttl;
          emit(next, action('stale key', 0, m, FAULTS.indexOf(fault)));
        }
      }
    }
  }

  /** The faults in which a marker is there under another run. */
  private keep(state: Uint8Array, m: number, fault: Fault, emit: Emit): void {
    const master = m * MASTER;
    const aside = state[master + ASIDE]!;
    const marker = state[master + LEFT]! || state[master + NONCE]!;
    const isMet = [HOLDER, CONTENDER].every((c) => state[this.last(c, m)] !== aside);
    if (fault === 'spare' ? aside !== 0 : fault === 'return' && aside === 0) return;
    if (fault === 'return' && this.options.declared !== 'unmet' && !isMet) return;
    const promoted = state[master + KNOWN] === 0 && (state[master + HISTORY]! & PROMOTED) !== 0;
    if (fault === 'kept restart' && this.options.declared === 'met' && promoted) return;
    const next = this.hit(state);
    this.endSessions(next, m);
    next[master + KNOWN] = 0;
    next[master + NONCE] = 0;
    next[master + LEFT] = fault === 'spare' ? 0 : fault === 'return' ? aside : marker;
    if (fault === 'spare') next.set([marker, next[master + OWNER]!, next[master + EXPIRY]!], master + ASIDE);
    next[master + HISTORY] = fault === 'promoted replica' ? PROMOTED : 0;
    if (fault !== 'kept restart') {
      const [owner = 0, expiry = 0] = fault === 'return' ? state.slice(master + ASIDE + 1, master + ASIDE + 3) : [];
      next.set([owner, expiry], master + OWNER);
      if (fault === 'return') next.fill(0, master + ASIDE, master + MASTER);
      next[master + FROM] = 0;
      next[master + VETOED] = 0;
    }
    emit(next, action('fault', 0, m, FAULTS.indexOf(fault)));
  }

  private hit(state: Uint8Array): Uint8Array {
    const next = this.copy(state);
    next[this.faultsLeft]! -= 1;
    next[this.since] = 0;
    return next;
  }

  private empty(next: Uint8Array, m: number, fault: Fault): void {
    const master = m * MASTER;
    next[master + OWNER] = 0;
    next[master + EXPIRY] = 0;
    next[master + LEFT] = 0;
    if (fault === 'failback') {
      if (this.weak.has('no replid in the identity')) return;
      next[master + KNOWN] = 0;
      if (this.weak.has('replid compared at the handshake only')) return;
      this.endSessions(next, m);
      next[master + NONCE] = 0;
    } else {
      next[master + KNOWN] = 0;
      next[master + NONCE] = 0;
      // A flush does not change the process, so that earlier comparisons still hold: only the marker is gone.
      if (fault !== 'flush') this.endSessions(next, m);
    }
    next[master + FROM] = 0;
    next[master + VETOED] = 0;
    if (fault === 'warm spare' && this.weak.has('uptime shortens the wait')) next[master + HISTORY]! |= OLD;
    if (fault === 'two processes' && next[this.client(HOLDER) + BELIEF]! > 0) next[master + HISTORY]! |= TWIN;
  }

  /**
   * Scripts carry the run id and the replid of their handshake: everything that a client knew is refused from now on.
   */
  private endSessions(next: Uint8Array, m: number): void {
    for (const c of [HOLDER, CONTENDER]) next[this.client(c) + NONCES + m] = 0;
  }

  private tick(state: Uint8Array, emit: Emit): void {
    const { prompt, masters } = this.options;
    if (prompt && this.urgent) return;
    for (const c of [HOLDER, CONTENDER]) {
      const at = this.client(c);
      if (state[at + WITNESS] === 1 && state[at + CONTACT] === 0) return;
    }
    const next = this.copy(state);
    for (let m = 0; m < masters; m += 1) {
      if (decrement(next, m * MASTER + EXPIRY) === 0) next[m * MASTER + OWNER] = 0;
      if (decrement(next, m * MASTER + ASIDE + 2) === 0) next[m * MASTER + ASIDE + 1] = 0;
      if (decrement(next, m * MASTER + FROM) === 0) next[m * MASTER + VETOED] = 0;
    }
    for (const c of [HOLDER, CONTENDER]) this.age(next, c);
    if (prompt && next[this.since]! <= prompt.within) next[this.since]! += 1;
    emit(next, action('tick'));
  }

  private age(next: Uint8Array, c: number): void {
    const at = this.client(c);
    decrement(next, at + CONTACT);
    decrement(next, at + EARLY_LEFT);
    if (next[at + PHASE] !== ACTIVE) return;
    const held = next[at + BELIEF]! > 0;
    const belief = decrement(next, at + BELIEF);
    // An extension that reaches its quorum after the end of the old validity does not count.
    if (held && belief === 0) next[at + ROUND] = 0;
    const round = decrement(next, at + ROUND);
    if (round === 0) next[at + COUNTED] = 0;
    if (belief > 0 || round > 0) return;
    next[at + SENT] = 0;
    next[at + WITNESS] = 0;
    next[at + CONTACT] = 0;
    next[at + PHASE] = IDLE;
  }

  describe(code: number): string {
    return describe(code, CLIENTS);
  }

  show(state: Uint8Array): string {
    const masters = Array.from({ length: this.options.masters }, (_, m) => {
      const at = m * MASTER;
      const key = state[at + OWNER] === 0 ? '-' : `${CLIENTS[state[at + OWNER]! - 1]!}/${state[at + EXPIRY]!}`;
      const known = state[at + KNOWN] === 1;
      const young = state[at + FROM]! > 0 ? ` from +${state[at + FROM]!}` : '';
      const vetoed = state[at + VETOED] === 1 ? ' vetoed' : '';
      return `m${m + 1} ${key} ${known ? `n${state[at + NONCE]!}${young}${vetoed}` : 'unknown'}`;
    });
    const clients = CLIENTS.map((name, c) => {
      const at = this.client(c);
      const counted = this.names(state[at + COUNTED]!);
      if (state[at + BELIEF]! > 0) return `${name} believes for ${state[at + BELIEF]!}${counted && ` [${counted}]`}`;
      return state[at + PHASE] === ACTIVE ? `${name} asks [${counted}]` : `${name} -`;
    });
    return [...masters, ...clients].join(' | ');
  }

  private names(mask: number): string {
    return Array.from({ length: this.options.masters }, (_, m) => ((mask >> m) & 1 ? `m${m + 1}` : ''))
      .filter(Boolean)
      .join(' ');
  }

  private votes(state: Uint8Array, m: number): boolean {
    return state[m * MASTER + KNOWN] === 1 && state[m * MASTER + FROM] === 0;
  }

  /** Reuses numbers that no state refers to any more, so that states stay few. Old copies contain the first number. */
  private freshNonce(state: Uint8Array, m: number): number {
    const used = [HOLDER, CONTENDER].map((c) => state[this.client(c) + NONCES + m]!);
    used.push(state[m * MASTER + NONCE]!, state[m * MASTER + LEFT]!, state[m * MASTER + ASIDE]!);
    used.push(...[HOLDER, CONTENDER].map((c) => state[this.last(c, m)]!));
    let nonce = INITIAL_NONCE + 1;
    while (used.includes(nonce)) nonce += 1;
    return nonce;
  }

  /** Where the nonce is that a client has accepted last, whatever became of the session. */
  private last(c: number, m: number): number {
    return this.client(c) + NONCES + this.options.masters + m;
  }

  private get keepsData(): boolean {
    return this.options.faults.some((fault) => KEEPING.includes(fault));
  }

  private get vetoes(): boolean {
    return !this.weak.has('no veto') && !this.weak.has('early vote by a holder');
  }

  private get remembersWhoVotes(): boolean {
    return (this.options.attemptCounts ?? 'always') !== 'always';
  }

  private get passedOnce(): boolean {
    return this.weak.has('from checked until it passed once');
  }

  private client(c: number): number {
    return this.options.masters * MASTER + c * this.clientWidth;
  }
}
