import { type Emit } from './checker.js';
import { bitCount, decrement, layoutOf, mastersWhere, StateModel, stepsOf } from './states.js';

export type GateFault =
  | 'empty restart'
  /** With any marker that was ever written, its `from` long past, and without the key, with it, or with L's full ttl. */
  | 'stale restart'
  | 'kept restart'
  | 'flush'
  | 'marker deleted'
  | 'all lost'
  /** An empty server takes the place of the master. */
  | 'spare'
  /** The master is back in a new process, with its data of before. */
  | 'return'
  /** It is back in its old process, which has run on. */
  | 'live return'
  /** The address leads to another server, or back. */
  | 'detour';

export interface GateOptions {
  readonly masters: 1 | 2 | 3 | 5;
  /** The ttl of L and that of X. */
  readonly ttls: readonly [number, number];
  /** The `maxTtl` of each, for which it marks. By default the larger ttl. Protocol 8.1. */
  readonly maxTtls?: readonly [number, number];
  readonly faults: readonly GateFault[];
  readonly maxFaults: number;
  readonly oneAttempt?: boolean;
  /** Answers are lost: keys without a holder are left. */
  readonly lostAnswers?: boolean;
  /** Extensions of L with ttl 1, sent before, arrive at any time. */
  readonly late?: boolean;
  readonly firstBoot?: boolean;
  /** Clients connect through addresses, which `detour` changes. */
  readonly addresses?: boolean;
  /** A server more than masters, to which an address may lead. */
  readonly spareServer?: boolean;
  /** No client acquires: only that no connection which has compared meets the marker of another run. */
  readonly lemma?: boolean;
  /** Calls come in each tick: all masters vote maxTtl after the last fault. */
  readonly prompt?: boolean;
  readonly noClients?: boolean;
  /** Only calls that must compare do. */
  readonly strict?: boolean;
  readonly without?: readonly string[];
}

const [L, X] = [0, 1];
const NAMES = ['L', 'X'];

/** How many runs before this one can be those of older copies. */
const OLDER_RUNS = 3;

const steps = stepsOf({
  tick: () => 'a tick passes',
  acquire: (client) => `${client} starts an attempt`,
  extend: (client) => `${client} starts an extension`,
  grant: (client, master) => `${master} grants the attempt of ${client}`,
  refresh: (client, master) => `${master} extends the key of ${client}`,
  heal: (client, master) => `${master} sets the key of ${client} again`,
  lost: (client, master) => `${master} sets the key of ${client}, and the answer is lost`,
  late: (client, master) => `a late extension of ${client}, with ttl 1, reaches ${master}`,
  compare: (client, master) => `a call of ${client} compares the run at ${master}`,
  error: (client, master) =>
    `the first call of ${client} fails at ${master}, and ${client} takes the error for its answer`,
  connect: (client, master) => `${client} connects to ${master} anew, and compares the run`,
  detour: (_, master, server) => `the address of ${master} leads to server ${server + 1}`,
  'all lost': () => 'all masters lose their data',
  'empty restart': (_, master) => `${master} restarts without data`,
  'kept restart': (_, master) => `${master} restarts with all its data`,
  'stale restart': (_, master) => `${master} restarts with an older copy`,
  flush: (_, master) => `${master} is flushed`,
  'marker deleted': (_, master) => `the marker of ${master} is deleted`,
  spare: (_, master) => `an empty server takes the place of ${master}`,
  return: (_, master) => `${master} is back in a new process`,
  'live return': (_, master) => `${master} is back in its old process`,
});

/** What a master serves: the key, and the marker. A run is numbered by its age, from one, the run of the process; 0 is none. */
const DATA = ['owner', 'expiry', 'run', 'from'] as const;

/** The offsets of the fields of a state. `conn`: the server that a client is connected to, plus one. */
function gateLayout(masters: number, servers: number) {
  const at = layoutOf(
    [
      // `runs`: bits of the runs in which a marker was written. `held`: L has had the key here. `hit`: something was lost here.
      [
        servers,
        [...DATA, 'runs', 'held', 'hit', 'asideOwner', 'asideExpiry', 'asideRun', 'asideFrom', 'aside'] as const,
      ],
      [2, ['belief', 'round', 'counted'] as const],
      [2 * masters, ['connOf', 'joinedOf'] as const],
      [masters, ['address'] as const],
    ],
    ['faults', 'since'] as const,
  );
  return {
    ...at,
    conn: (c: number, m: number): number => at.connOf(c * masters + m),
    /** Whether a connection stood when the round began. */
    joined: (c: number, m: number): number => at.joinedOf(c * masters + m),
  };
}

type GateLayout = ReturnType<typeof gateLayout>;

/**
 * Section 8: a holder L that acquires, extends and heals, a contender X, and N masters. Ticks are whole, and clocks agree.
 * Every step can happen at any time or never. A call that compares depends on nothing that its client knows: it stands for
 * late, repeated and foreign ones, too.
 */
export class GateModel extends StateModel<GateOptions> {
  private readonly at: GateLayout;
  private readonly servers: number;
  private readonly maxTtls: readonly [number, number];
  /** With `prompt`: a master waits for a call that comes in this tick. */
  private urgent = false;

  constructor(options: GateOptions) {
    const servers = options.masters + (options.spareServer ? 1 : 0);
    const at = gateLayout(options.masters, servers);
    super(options, at.width);
    this.at = at;
    this.servers = servers;
    const ttl = Math.max(...options.ttls);
    this.maxTtls = options.maxTtls ?? [ttl, ttl];
  }

  initial(): Uint8Array[] {
    const { at } = this;
    const { masters, maxFaults, firstBoot } = this.options;
    const state = new Uint8Array(this.width);
    state[at.faults] = maxFaults;
    for (let m = 0; m < masters; m += 1) {
      state[at.address(m)] = m;
      if (firstBoot) continue;
      state[at.run(m)] = state[at.runs(m)] = 1;
      for (const c of [L, X]) state[at.conn(c, m)] = m + 1;
    }
    return [state];
  }

  violation(state: Uint8Array): string | undefined {
    const { at } = this;
    const { masters, lemma, prompt, firstBoot } = this.options;
    if (state[at.belief(L)]! > 0 && state[at.belief(X)]! > 0) return 'L and X both believe that they hold the lock';
    for (let m = 0; m < masters; m += 1) {
      const votes = state[at.run(m)] === 1 && state[at.from(m)] === 0;
      if (prompt && state[at.since]! > this.maxTtls[0] && !votes)
        return `m${m + 1} does not vote although maxTtl has passed`;
      if (!firstBoot && state[at.hit(m)] === 0 && !votes)
        return `m${m + 1} is quarantined, and has never lost anything`;
      for (const c of lemma ? [L, X] : []) {
        const compared = state[at.conn(c, m)] === m + 1;
        if (compared && state[at.run(m)]! > 1)
          return `${NAMES[c]!} has compared at m${m + 1}, which has the marker of another run`;
      }
    }
    return undefined;
  }

  successors(state: Uint8Array, emit: Emit): void {
    const { masters, addresses, noClients, lemma, late } = this.options;
    this.urgent = false;
    for (const c of [L, X]) {
      if (!noClients && !lemma) this.begin(state, c, emit);
      for (let m = 0; m < masters; m += 1) {
        this.vote(state, c, m, emit);
        this.compare(state, c, m, emit);
        if (addresses) this.connect(state, c, m, emit);
        if (late && c === L) this.extendLate(state, m, emit);
      }
    }
    for (let m = 0; m < masters; m += 1) this.urgent ||= this.hasCall(state, m);
    if (state[this.at.faults]! > 0) for (const fault of this.options.faults) this.fail(state, fault, emit);
    this.tick(state, emit);
  }

  // Clients

  private begin(state: Uint8Array, c: number, emit: Emit): void {
    const { at } = this;
    const believes = state[at.belief(c)]! > 0;
    if (believes ? c === X || this.options.oneAttempt : state[at.round(c)]! > 0) return;
    const next = this.copy(state);
    next[at.round(c)] = this.options.ttls[c]!;
    next[at.counted(c)] = 0;
    // A round goes over the connections that stand at its beginning: Protocol 8.5.
    if (this.options.addresses) {
      for (let m = 0; m < this.options.masters; m += 1) next[at.joined(c, m)] = state[at.conn(c, m)]! > 0 ? 1 : 0;
    }
    emit(next, steps.action(believes ? 'extend' : 'acquire', c));
  }

  /** A call that acquires or extends passes the gate, or is answered that the master is quarantined. */
  private vote(state: Uint8Array, c: number, m: number, emit: Emit): void {
    const { at } = this;
    const bit = 1 << m;
    if (state[at.round(c)] === 0 || (state[at.counted(c)]! & bit) !== 0) return;
    const v = this.serverOf(state, c, m);
    if (v === undefined || !this.isJoined(state, c, m)) return;
    if (
      state[at.run(v)] === 0 &&
      !this.weak.has('no marker is like a marker') &&
      !this.weak.has('the marker is not looked at')
    )
      return;
    const extends_ = state[at.belief(c)]! > 0;
    const owner = state[at.owner(v)]!;
    if (owner !== 0 && owner !== c + 1) return;
    if (extends_ ? c === X : owner === c + 1 && !this.options.addresses) return;
    // Protocol 8.6
    const quarantined = this.isQuarantined(state, v);
    const counts = !quarantined || (extends_ && this.countsInQuarantine(owner !== 0));
    if (
      !counts &&
      !(extends_ && owner === 0 && this.weak.has('a present key counts on a quarantined master, and heals are set'))
    )
      return;
    const next = this.copy(state);
    next[at.owner(v)] = c + 1;
    next[at.expiry(v)] = this.options.ttls[c]!;
    if (c === L) next[at.held(v)] = 1;
    if (this.options.lostAnswers) emit(next, steps.action('lost', c, m));
    if (counts) this.count(next, c, bit);
    emit(next, steps.action(extends_ ? (owner === 0 ? 'heal' : 'refresh') : 'grant', c, m));
  }

  private count(next: Uint8Array, c: number, bit: number): void {
    const { at } = this;
    next[at.counted(c)]! |= bit;
    if (bitCount(next[at.counted(c)]!) <= this.options.masters / 2) return;
    next[at.belief(c)] = next[at.round(c)]!;
    next[at.round(c)] = next[at.counted(c)] = 0;
  }

  /** Protocol 6.2: an extension only moves the end of a key forward. */
  private extendLate(state: Uint8Array, m: number, emit: Emit): void {
    const v = this.serverOf(state, L, m);
    if (v === undefined || state[this.at.owner(v)] !== L + 1 || this.isQuarantined(state, v)) return;
    const expiry = state[this.at.expiry(v)]!;
    const next = this.copy(state);
    next[this.at.expiry(v)] = this.weak.has('an extension shortens the key') ? 1 : Math.max(expiry, 1);
    if (next[this.at.expiry(v)] !== expiry) emit(next, steps.action('late', L, m));
  }

  private isQuarantined(state: Uint8Array, v: number): boolean {
    if (this.weak.has('the marker is not looked at') || this.weak.has('`from` is not compared')) return false;
    return state[this.at.from(v)]! > 0;
  }

  private countsInQuarantine(present: boolean): boolean {
    if (!present) return this.weak.has('a heal counts on a quarantined master');
    return (
      this.weak.has('a present key counts on a quarantined master, and heals are refused') ||
      this.weak.has('a present key counts on a quarantined master, and heals are set')
    );
  }

  /** The server to which a call goes, unless the first one over its connection has not been answered: Protocol 8.4. */
  private serverOf(state: Uint8Array, c: number, m: number): number | undefined {
    const { at } = this;
    const conn = state[at.conn(c, m)]!;
    if (conn > 0) return conn - 1;
    const early =
      this.weak.has('the first call over a connection does not compare') ||
      this.weak.has('calls may be executed before the first one over their connection');
    return early ? m : undefined;
  }

  private isJoined(state: Uint8Array, c: number, m: number): boolean {
    if (!this.options.addresses || this.weak.has('a new connection joins a round under way')) return true;
    return state[this.at.joined(c, m)] === 1;
  }

  /** A call that compares the run, and marks: Protocol 8.2. */
  private compare(state: Uint8Array, c: number, m: number, emit: Emit): void {
    const { at } = this;
    const first = state[at.conn(c, m)] === 0;
    if (first && this.options.addresses) return;
    const v = first ? m : state[at.conn(c, m)]! - 1;
    if (first && this.weak.has('an error counts as the answer to the first call')) {
      const unmarked = this.copy(state);
      unmarked[at.conn(c, m)] = m + 1;
      emit(unmarked, steps.action('error', c, m));
    }
    const skipsFirst = this.weak.has('the first call over a connection does not compare');
    if ((skipsFirst || (this.options.strict && !first)) && !this.mustCompare(state, v)) return;
    const next = this.copy(state);
    this.mark(next, c, v);
    next[at.conn(c, m)] = v + 1;
    emit(next, steps.action('compare', c, m));
  }

  /** Whether a call compares that is not the first one over its connection. */
  private mustCompare(state: Uint8Array, v: number): boolean {
    if (state[this.at.run(v)] !== 0) return false;
    return (
      !this.weak.has('a call that finds no marker is refused, and does not compare') &&
      !this.weak.has('no marker is like a marker')
    );
  }

  private mark(next: Uint8Array, c: number, v: number): void {
    const { at } = this;
    const anyRun = this.weak.has('a marker is enough, whatever its run');
    const again = this.weak.has('a marker of this run is written anew before its `from`') && next[at.from(v)]! > 0;
    if ((anyRun ? next[at.run(v)] !== 0 : next[at.run(v)] === 1) && !again) return;
    next[at.run(v)] = 1;
    next[at.from(v)] = this.maxTtls[c]!;
    next[at.runs(v)]! |= 1;
  }

  /** A new connection to where the address leads now. One server counts once: Protocol 8.5. */
  private connect(state: Uint8Array, c: number, m: number, emit: Emit): void {
    const { at } = this;
    const v = state[at.address(m)]!;
    if (state[at.conn(c, m)] === v + 1) return;
    for (let other = 0; other < this.options.masters; other += 1) {
      const used = other !== m && state[at.conn(c, other)] === v + 1;
      if (used && !this.weak.has('one server counts for two masters')) return;
    }
    const next = this.copy(state);
    next[at.conn(c, m)] = v + 1;
    next[at.joined(c, m)] = 0;
    this.mark(next, c, v);
    emit(next, steps.action('connect', c, m));
  }

  // Faults

  private fail(state: Uint8Array, fault: GateFault, emit: Emit): void {
    if (fault === 'all lost') {
      const next = this.hit(state);
      for (let m = 0; m < this.options.masters; m += 1) {
        this.restart(next, m);
        this.wipe(next, m);
      }
      emit(next, steps.action('all lost'));
      return;
    }
    for (let m = 0; m < this.options.masters; m += 1) {
      if (fault === 'detour') this.detour(state, m, emit);
      else if (fault === 'stale restart') this.restartStale(state, m, emit);
      else this.failOne(state, fault, m, emit);
    }
  }

  private failOne(
    state: Uint8Array,
    fault: Exclude<GateFault, 'all lost' | 'detour' | 'stale restart'>,
    m: number,
    emit: Emit,
  ): void {
    const { at } = this;
    const aside = state[at.aside(m)] === 1;
    if (fault === 'spare' ? aside : (fault === 'return' || fault === 'live return') && !aside) return;
    const next = this.hit(state);
    next[at.hit(m)] = 1;
    if (fault === 'marker deleted') next[at.run(m)] = next[at.from(m)] = 0;
    // The process takes its data along.
    if (fault === 'spare') {
      next.copyWithin(at.asideOwner(m), at.owner(m), at.owner(m) + DATA.length);
      next[at.aside(m)] = 1;
    }
    if (fault !== 'flush' && fault !== 'marker deleted') this.restart(next, m);
    if (fault === 'empty restart' || fault === 'flush' || fault === 'spare') this.wipe(next, m);
    if (fault === 'return' || fault === 'live return') {
      next.copyWithin(at.owner(m), at.asideOwner(m), at.asideOwner(m) + DATA.length);
      next.fill(0, at.asideOwner(m), at.aside(m) + 1);
    }
    if (fault === 'live return') next[at.run(m)] = 1;
    emit(next, steps.action(fault, 0, m));
  }

  private restartStale(state: Uint8Array, m: number, emit: Emit): void {
    const { at } = this;
    const keys = [
      [0, 0],
      [state[at.owner(m)]!, state[at.expiry(m)]!],
      [L + 1, this.options.ttls[0]],
    ] as const;
    for (let run = 0; run <= OLDER_RUNS; run += 1) {
      if (run > 0 && ((state[at.runs(m)]! >> (run - 1)) & 1) === 0) continue;
      for (const [kind, [owner, expiry]] of keys.entries()) {
        if ((kind === 1 && owner === 0) || (kind === 2 && state[at.held(m)] === 0)) continue;
        const next = this.hit(state);
        this.restart(next, m);
        next[at.hit(m)] = 1;
        next[at.run(m)] = run === 0 ? 0 : run + 1;
        next[at.from(m)] = 0;
        next[at.owner(m)] = owner;
        next[at.expiry(m)] = expiry;
        emit(next, steps.action('stale restart', 0, m));
      }
    }
  }

  private detour(state: Uint8Array, m: number, emit: Emit): void {
    const { at } = this;
    const before = state[at.address(m)]!;
    for (let v = 0; v < this.servers; v += 1) {
      if (v === before || (before !== m && v !== m)) continue;
      const next = this.hit(state);
      next[at.address(m)] = v;
      for (const c of [L, X]) next[at.conn(c, m)] = next[at.joined(c, m)] = 0;
      emit(next, steps.action('detour', 0, m, v));
    }
  }

  private hit(state: Uint8Array): Uint8Array {
    const next = this.copy(state);
    next[this.at.faults]! -= 1;
    next[this.at.since] = 0;
    return next;
  }

  /** A new process: its run is a new one, and connections end. */
  private restart(next: Uint8Array, v: number): void {
    const { at } = this;
    for (const run of [at.run(v), at.asideRun(v)]) if (next[run]! > 0) next[run]! += 1;
    next[at.runs(v)] = (next[at.runs(v)]! << 1) & 15;
    if (this.weak.has('connections outlive their server')) return;
    for (const c of [L, X]) {
      for (let m = 0; m < this.options.masters; m += 1) {
        if (next[at.conn(c, m)] === v + 1) next[at.conn(c, m)] = next[at.joined(c, m)] = 0;
      }
    }
  }

  private wipe(next: Uint8Array, v: number): void {
    const { at } = this;
    for (const field of [at.owner(v), at.expiry(v), at.run(v), at.from(v)]) next[field] = 0;
    next[at.hit(v)] = 1;
  }

  // Time

  private hasCall(state: Uint8Array, m: number): boolean {
    const { at } = this;
    if (!this.options.prompt || state[at.run(m)] === 1) return false;
    return this.mustCompare(state, m) || state[at.conn(L, m)] === 0 || state[at.conn(X, m)] === 0;
  }

  private tick(state: Uint8Array, emit: Emit): void {
    const { at } = this;
    if (this.urgent) return;
    const next = this.copy(state);
    for (let v = 0; v < this.servers; v += 1) {
      if (decrement(next, at.expiry(v)) === 0) next[at.owner(v)] = 0;
      if (decrement(next, at.asideExpiry(v)) === 0) next[at.asideOwner(v)] = 0;
      decrement(next, at.from(v));
      decrement(next, at.asideFrom(v));
    }
    for (const c of [L, X]) {
      const held = next[at.belief(c)]! > 0;
      if (decrement(next, at.belief(c)) === 0 && held) next[at.round(c)] = 0;
      if (decrement(next, at.round(c)) === 0) next[at.counted(c)] = 0;
    }
    if (this.options.prompt && next[at.since]! <= this.maxTtls[0]) next[at.since]! += 1;
    emit(next, steps.action('tick'));
  }

  readonly describe = (code: number): string => steps.describe(code, NAMES);

  show(state: Uint8Array): string {
    const { at } = this;
    const parts = Array.from({ length: this.servers }, (_, v) => {
      const key = state[at.owner(v)] === 0 ? '-' : `${NAMES[state[at.owner(v)]! - 1]!}/${state[at.expiry(v)]!}`;
      const run = state[at.run(v)]!;
      const marker = run === 0 ? 'unmarked' : run === 1 ? 'marked' : `marker of run -${run - 1}`;
      const from = state[at.from(v)] === 0 ? '' : ` from +${state[at.from(v)]!}`;
      return `m${v + 1} ${key} ${marker}${from}`;
    });
    for (const c of [L, X]) {
      const numbers = Array.from({ length: this.options.masters }, (_, m) => m);
      const counted = mastersWhere(numbers.length, (m) => ((state[at.counted(c)]! >> m) & 1) === 1);
      const conns = numbers.map((m) => state[at.conn(c, m)] || '-').join('');
      const round = state[at.round(c)] === 0 ? '' : ` ${counted}/${state[at.round(c)]!}`;
      const believes = state[at.belief(c)] === 0 ? (round ? ' asks' : '') : ` believes for ${state[at.belief(c)]!}`;
      parts.push(`${NAMES[c]!} (${conns})${believes}${round}`);
    }
    return parts.join(' | ');
  }
}
