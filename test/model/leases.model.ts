import { type Emit } from './checker.js';
import { LeaseLayout } from './lease.layout.js';
import { decrement, mastersWhere, StateModel, stepsOf } from './states.js';

export interface LeaseOptions {
  readonly masters: 3 | 5;
  readonly losses: number;
  /** Each of the clients has a name and a ttl in ticks. Clients of one kind are alike. */
  readonly clients: readonly LeaseClient[];
  /** Ticks for which a master that has lost its data grants nothing. By default the longest ttl. */
  readonly quarantine?: number;
  /**
   * Explores also what only refuses requests of others: lost answers, releases that arrive late or never, heals on a
   * master in quarantine, and rounds that begin before their first answer.
   */
  readonly lossy?: boolean;
  /** States that differ only in the order of masters or of like clients are one: counter-examples are harder to read. */
  readonly sorted?: boolean;
  readonly without?: readonly string[];
}

export interface LeaseClient {
  readonly name: string;
  readonly kind: string;
  readonly ttl: number;
}

export interface Request {
  readonly c: number;
  readonly m: number;
  /** Which of several locks the client takes; its meaning is up to the model. */
  readonly choice?: number;
}

const steps = stepsOf({
  tick: () => 'a tick passes',
  begin: (client) => `${client} begins an attempt`,
  'begin to extend': (client) => `${client} begins an extension`,
  grant: (client, master) => `${master} grants the attempt of ${client}`,
  'grant a slot': (client, master, choice) => `${master} grants the attempt of ${client} on slot ${choice}`,
  extend: (client, master) => `${master} extends what ${client} has`,
  'set again': (client, master) => `${master} sets again what ${client} has`,
  lost: (client, master) => `${master} stores what ${client} asks for, and its answer does not count`,
  release: (client) => `${client} releases`,
  'give up': (client) => `${client} gives up`,
  late: (client, master) => `the release of ${client} reaches ${master}`,
  loss: (_, master) => `${master} loses its data`,
  reserve: (client, master) => `${master} is reserved for ${client}`,
  wait: (client, master) => `${client} writes its writer key on ${master}`,
});
type Step = Parameters<typeof steps.action>[0];

/**
 * Clients that acquire, extend, heal and release with a quorum of N masters. Ticks are whole, and clocks agree. What a
 * master grants is up to the model that extends this one.
 *
 * A key of a client that does not believe in its lock and has no attempt running only refuses requests of others. Unless
 * `lossy`, what leaves such a key and nothing else is left out, since the same steps without it are explored. For the
 * same reason a round begins with its first answer.
 */
export abstract class LeasesModel extends StateModel<LeaseOptions> {
  protected readonly at: LeaseLayout;
  private readonly quorum: number;
  private readonly quarantine: number;

  protected constructor(options: LeaseOptions) {
    const { clients, masters, quarantine } = options;
    const kinds = clients.map(({ kind, ttl }) => `${kind} ${ttl}`);
    const at = new LeaseLayout(masters, kinds);
    super(options, at.width);
    this.at = at;
    this.quorum = Math.floor(masters / 2) + 1;
    this.quarantine = quarantine ?? Math.max(...clients.map(({ ttl }) => ttl));
  }

  /** Grants an attempt on one master, or returns false and changes nothing. */
  protected abstract grant(next: Uint8Array, request: Required<Request>): boolean;
  /** Extends or heals on one master, or returns false and changes nothing. */
  protected abstract extend(next: Uint8Array, request: Request): boolean;
  /** Removes what a client has on one master. Protocol 7.1 and 7.2. */
  protected abstract remove(next: Uint8Array, request: Request): void;
  protected abstract showKey(state: Uint8Array, m: number): string;

  /** How many locks there are to choose from. */
  protected readonly choices: number = 1;

  initial(): Uint8Array[] {
    const state = new Uint8Array(this.width);
    state[this.at.losses] = this.options.losses;
    return [state];
  }

  successors(state: Uint8Array, emit: Emit): void {
    const { clients, masters } = this.options;
    for (let c = 0; c < clients.length; c += 1) {
      for (let m = 0; m < masters; m += 1) this.ask(state, { c, m }, emit);
      this.release(state, c, emit);
      if (!this.options.lossy) continue;
      this.start(state, c, emit);
      for (let m = 0; m < masters; m += 1) this.arriveLate(state, { c, m }, emit);
    }
    for (let m = 0; m < masters; m += 1) this.lose(state, m, emit);
    this.tick(state, emit);
  }

  /**
   * One request of an attempt or of an extension reaches a master and is granted. The first one begins the round.
   * Protocol 4.1.
   */
  private ask(state: Uint8Array, { c, m }: Request, emit: Emit): void {
    if (state[this.at.quarantine(m)]! > 0) {
      if (this.options.lossy && this.believes(state, c)) this.store(state, { c, m }, emit);
      return;
    }
    const running = state[this.at.round(c)]! > 0;
    if (this.believes(state, c)) {
      const counted = state[this.at.counted(c, m)] === 1;
      if (running && !counted) this.count(state, { c, m }, 'ask', emit);
      // An extension that fails is tried again within the validity, and its answers no longer count.
      this.count(state, { c, m }, 'again', emit);
      if (this.options.lossy) this.store(state, { c, m }, emit);
      return;
    }
    if (this.options.lossy) this.store(state, { c, m }, emit);
    for (let choice = 0; choice < this.choices; choice += 1) {
      if (this.mayChoose(state, c, choice)) this.count(state, { c, m, choice }, 'ask', emit);
    }
  }

  private count(state: Uint8Array, request: Request, kind: 'ask' | 'again', emit: Emit): void {
    const { c, m, choice = state[this.at.choice(c)]! } = request;
    const believes = this.believes(state, c);
    const hasKey = state[this.at.end(c, m)]! > 0;
    if (kind === 'ask' && state[this.at.counted(c, m)] === 1) return;
    const next = this.copy(state);
    if (kind === 'again' || state[this.at.round(c)] === 0) this.begin(next, c, choice);
    if (!this.answer(next, { c, m, choice })) return;
    next[this.at.counted(c, m)] = 1;
    // Protocol 4.3 and 4.4
    if (this.at.countedBy(next, c) >= this.quorum) {
      next[this.at.belief(c)] = next[this.at.round(c)]!;
      this.endRound(next, c);
      this.held(next, c);
    }
    const granted = this.choices > 1 ? 'grant a slot' : 'grant';
    this.emit(next, !believes ? granted : hasKey ? 'extend' : 'set again', emit, { c, m, choice });
  }

  /** A request arrives, and its answer is lost or does not count. */
  private store(state: Uint8Array, { c, m }: Request, emit: Emit): void {
    if (!this.believes(state, c) && state[this.at.counted(c, m)] === 1) return;
    const choice = state[this.at.choice(c)]!;
    const next = this.copy(state);
    if (this.answer(next, { c, m, choice })) this.emit(next, 'lost', emit, { c, m, choice });
  }

  private answer(next: Uint8Array, request: Required<Request>): boolean {
    const { c, m } = request;
    if (this.believes(next, c)) return this.extend(next, request);
    // The release of an earlier attempt comes first, because a connection keeps the order.
    // Protocol 4.5
    if (next[this.at.end(c, m)]! > 0) this.remove(next, request);
    return this.grant(next, request);
  }

  private start(state: Uint8Array, c: number, emit: Emit): void {
    if (this.active(state, c) && !this.believes(state, c)) return;
    for (let choice = 0; choice < this.choices; choice += 1) {
      if (!this.mayChoose(state, c, choice)) continue;
      const next = this.copy(state);
      this.begin(next, c, choice);
      this.emit(next, this.believes(state, c) ? 'begin to extend' : 'begin', emit, { c, m: 0, choice });
    }
  }

  /** A client keeps to its choice until the last key of it is gone: a state has one choice for each client. */
  private mayChoose(state: Uint8Array, c: number, choice: number): boolean {
    if (choice === state[this.at.choice(c)]) return true;
    if (this.active(state, c)) return false;
    return !this.at.hasKey(state, c);
  }

  private begin(next: Uint8Array, c: number, choice: number): void {
    this.endRound(next, c);
    // Protocol 3.2
    next[this.at.round(c)] = this.ttl(c);
    next[this.at.choice(c)] = choice;
  }

  private endRound(next: Uint8Array, c: number): void {
    next[this.at.round(c)] = 0;
    for (let m = 0; m < this.options.masters; m += 1) next[this.at.counted(c, m)] = 0;
  }

  /** A client has its lock, or a new validity. */
  protected held(_next: Uint8Array, _c: number): void {
    // Only some models remember the waiting clients.
  }

  private release(state: Uint8Array, c: number, emit: Emit): void {
    if (state[this.at.belief(c)] === 0 && state[this.at.round(c)] === 0) return;
    const next = this.copy(state);
    this.end(next, c);
    this.emit(next, this.believes(state, c) ? 'release' : 'give up', emit, { c, m: 0 });
  }

  private end(next: Uint8Array, c: number): void {
    this.endRound(next, c);
    next[this.at.belief(c)] = 0;
    if (this.options.lossy) return;
    for (let m = 0; m < this.options.masters; m += 1) this.remove(next, { c, m });
    next[this.at.choice(c)] = 0;
  }

  /** A release has no gate: Protocol 8.3. */
  private arriveLate(state: Uint8Array, { c, m }: Request, emit: Emit): void {
    if (this.believes(state, c) || state[this.at.end(c, m)] === 0 || state[this.at.counted(c, m)] === 1) return;
    const next = this.copy(state);
    this.remove(next, { c, m });
    this.emit(next, 'late', emit, { c, m });
  }

  private lose(state: Uint8Array, m: number, emit: Emit): void {
    if (state[this.at.losses] === 0) return;
    const next = this.copy(state);
    next[this.at.losses]! -= 1;
    this.at.clear(next, m);
    next[this.at.quarantine(m)] = this.quarantine;
    this.emit(next, 'loss', emit, { c: 0, m });
  }

  private tick(state: Uint8Array, emit: Emit): void {
    const next = this.copy(state);
    for (let m = 0; m < this.options.masters; m += 1) this.at.age(next, m);
    for (let c = 0; c < this.options.clients.length; c += 1) {
      const held = this.believes(next, c);
      const active = held || next[this.at.round(c)]! > 0;
      decrement(next, this.at.belief(c));
      decrement(next, this.at.round(c));
      const over = held ? !this.believes(next, c) : next[this.at.round(c)] === 0;
      // An extension that reaches its quorum after the end of the old validity does not count.
      // Protocol 6.3 and 6.4
      if (active && over) this.end(next, c);
    }
    this.emit(next, 'tick', emit, { c: 0, m: 0 });
  }

  protected believes(state: Uint8Array, c: number): boolean {
    return state[this.at.belief(c)]! > 0;
  }

  protected active(state: Uint8Array, c: number): boolean {
    return this.believes(state, c) || state[this.at.round(c)]! > 0;
  }

  protected ttl(c: number): number {
    return this.options.clients[c]!.ttl;
  }

  /** Brings a state into the form in which it is compared with others. */
  protected settle(next: Uint8Array): void {
    if (this.options.sorted) this.at.sort(next);
  }

  protected emit(next: Uint8Array, step: Step, emit: Emit, { c, m, choice = 0 }: Request): void {
    this.settle(next);
    emit(next, steps.action(step, c, m, choice));
  }

  describe(code: number): string {
    const names = this.options.clients.map(({ name }) => name);
    return steps.describe(code, names);
  }

  show(state: Uint8Array): string {
    const masters = Array.from({ length: this.options.masters }, (_, m) => {
      const wait = state[this.at.quarantine(m)]!;
      return `m${m + 1} ${this.showKey(state, m)}${wait > 0 ? ` waits ${wait}` : ''}`;
    });
    const clients = this.options.clients.map(({ name }, c) => {
      const counted = mastersWhere(this.options.masters, (m) => state[this.at.counted(c, m)] === 1);
      const round = state[this.at.round(c)]! > 0 ? ` ${counted}/${state[this.at.round(c)]!}` : '';
      if (this.believes(state, c)) return `${name} believes for ${state[this.at.belief(c)]!}${round}`;
      return round ? `${name} asks${round}` : `${name} -`;
    });
    return [...masters, ...clients].join(' | ');
  }
}
