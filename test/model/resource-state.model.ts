import { type Emit } from './checker.js';
import {
  ACK,
  ACK_BEFORE,
  BALLOT,
  COUNTS,
  FLAGS,
  NOTED,
  OWN,
  PHASE,
  PROMISE,
  READ,
  READ_SEQ,
  READ_VALUE,
  REPLIED,
  ResourceStateLayout,
  SENT,
  SEQ,
  SUPERSEDED_THEN,
  VALUE,
} from './resource-state.layout.js';
import { StateModel, stepsOf } from './states.js';

/** A rule of section 10 that is left out, or that could be read in another way. */
type ResourceStateWeakening =
  | 'no promise on read'
  | 'a refused open counts'
  | 'numbers are not unique, equal ones are promised'
  | 'numbers are not unique, equal ones are refused'
  | 'no write-back'
  | 'write-back under the old version'
  | 'nothing is not written back'
  | 'write-back skipped when a quorum agrees'
  | 'write-back skipped when all agree on the value'
  | 'replies of other data count'
  | 'open marks the data as written'
  | 'a reset master passes for a new installation'
  | 'no noted nonce'
  | 'no quarantine'
  | 'nonce noted during the quarantine'
  | 'seq not raised for the next value'
  | 'two sets in flight'
  | 'a promise expires'
  | 'a newer value expires before an older one'
  | 'a later get answers from memory'
  /** Not a weakening but a stronger property: a set fails if another holder opened since the get. */
  | 'no holder opens before the acknowledgement';

export interface ResourceStateOptions {
  readonly masters: 3 | 5;
  /** What each holder may write after its open, in this order: a new value, or once more the value before it. */
  readonly holders: readonly (readonly ('set' | 'repeat')[])[];
  /** How many times a master loses its data. */
  readonly losses: number;
  /** Every master starts with an old entry, and a lost one comes back with it, instead of having no entry. */
  readonly stale?: boolean;
  /** Masters are interchangeable: fewer states, and counter-examples that are harder to read. */
  readonly sorted?: boolean;
  readonly without?: readonly ResourceStateWeakening[];
}

const [IDLE, OPENING, WRITING, RESTING] = [0, 1, 2, 3];

/** Bits of FLAGS. */
const [DISAGREE, GOT, OVERTAKEN, BOTH] = [1, 2, 4, 8];

const [NOT_READ, REPLACED, OPENED] = [1, 2, 3];
const PROPERTIES = [
  undefined,
  'a set is acknowledged, and a holder with a higher ballot has opened without reading it',
  'a get returns a value that was superseded before it began',
  'a set after a get is acknowledged although another holder opened in between',
];

/** Values before those that holders set: nothing, and that of the old entry. */
const GIVEN = [
  { holder: -1, seq: 0, name: 'nothing' },
  { holder: -1, seq: 0, name: 'old' },
];

const NAMES = 'ABC';

const steps = stepsOf({
  reply: (holder, master) => `${master} answers the open of ${holder}`,
  skip: (holder) => `${holder}'s get returns without a write`,
  write: (holder, master, seq) => `${master} acknowledges ${holder}.${seq}`,
  lost: (holder, master, seq) => `${master} stores ${holder}.${seq}, and its answer is lost`,
  late: (holder, master, seq) => `${master} stores ${holder}.${seq} late`,
  again: (holder) => `${holder}'s next get returns from memory`,
  loss: (_, master) => `${master} loses its data`,
  expire: (_, master) => `what ${master} stores expires`,
  install: (_, master) => `${master} gets the late marker of a new installation`,
});
type Step = Parameters<typeof steps.action>[0];

/** The write of a holder at a master. */
interface Write {
  readonly c: number;
  readonly m: number;
  readonly seq: number;
}

/**
 * Section 10: a register over N masters, with one ballot for each holder. Locks are not modelled: any number of holders
 * may be active at once, and no script compares the lock key.
 *
 * A refusal only forbids. What leaves a promise and nothing else is therefore left out, since the same steps without it
 * are explored: lost replies and repeated rounds of an open, promises on masters that do not count, promises raised by
 * a write, and the comparison of lock keys. For the same reason a holder begins when a first master answers its open.
 */
export class ResourceStateModel extends StateModel<ResourceStateOptions> {
  private readonly quorum: number;
  private readonly at: ResourceStateLayout;
  /** Ballots that are older than those of all holders. */
  private readonly oldBallots: number;
  /** The value of each write of each holder. */
  private readonly values: readonly (readonly number[])[];
  private readonly setters: readonly { readonly holder: number; readonly seq: number; readonly name: string }[];
  private readonly roles: readonly string[];
  private readonly repeats: boolean;

  constructor(options: ResourceStateOptions) {
    const { masters, holders } = options;
    const at = new ResourceStateLayout(masters, holders.length);
    super(options, at.width);
    this.at = at;
    this.quorum = Math.floor(masters / 2) + 1;
    this.oldBallots = options.stale ? 1 : 0;
    const setters = [...GIVEN];
    this.values = holders.map((writes, holder) => {
      const values = [0];
      for (const [before, write] of writes.entries()) {
        const seq = before + 1;
        if (write === 'set') setters.push({ holder, seq, name: `${NAMES[holder]!.toLowerCase()}${seq}` });
        values.push(setters.length - 1);
      }
      return values;
    });
    this.setters = setters;
    this.roles = holders.map((writes) => writes.join());
    this.repeats = this.roles.some((role) => role.includes('repeat'));
  }

  initial(): Uint8Array[] {
    const state = new Uint8Array(this.width);
    state[this.at.losses] = this.options.losses;
    for (let m = 0; m < this.options.masters; m += 1) {
      this.restore(state, m);
      state[this.at.master(m) + COUNTS] = 1;
    }
    return [state];
  }

  violation(state: Uint8Array): string | undefined {
    return PROPERTIES[state[this.at.broken]!];
  }

  successors(state: Uint8Array, emit: Emit): void {
    const { holders, masters } = this.options;
    for (let c = 0; c < holders.length; c += 1) {
      const phase = state[this.at.holder(c) + PHASE]!;
      if (phase === IDLE) this.begin(state, c, emit);
      else if (phase === OPENING) this.open(state, c, emit);
      else this.proceed(state, c, emit);
    }
    for (let m = 0; m < masters; m += 1) {
      this.lose(state, m, emit);
      this.expire(state, m, emit);
      this.install(state, m, emit);
    }
  }

  /**
   * Draws a ballot anywhere in the order of all ballots, because clocks are arbitrary, and notes the nonces.
   * Protocol 10.1 and 10.5.
   */
  private begin(state: Uint8Array, c: number, emit: Emit): void {
    if (this.waits(state, c)) return;
    const highest = Math.max(this.oldBallots, this.at.highestBallot(state));
    const equal =
      this.weak.has('numbers are not unique, equal ones are promised') ||
      this.weak.has('numbers are not unique, equal ones are refused');
    for (let ballot = this.oldBallots + 1; ballot <= highest + 1; ballot += 1) {
      const begun = state.slice();
      this.at.shift(begun, ballot);
      this.note(begun, c, ballot);
      this.openOnEach(begun, c, emit);
      if (!equal || ballot > highest) continue;
      begun.set(state);
      this.note(begun, c, ballot);
      this.openOnEach(begun, c, emit);
    }
  }

  /** Holders that do the same are alike: they begin in the order of their names. */
  private waits(state: Uint8Array, c: number): boolean {
    for (let other = 0; other < c; other += 1) {
      if (this.roles[other] === this.roles[c] && state[this.at.holder(other) + PHASE] === IDLE) return true;
    }
    return false;
  }

  private note(next: Uint8Array, c: number, ballot: number): void {
    for (let m = 0; m < this.options.masters; m += 1) {
      const noted = !this.quarantined(next, m) || this.weak.has('nonce noted during the quarantine');
      if (noted) next[this.at.knows(c, m)] = NOTED;
    }
    const at = this.at.holder(c);
    next[at + PHASE] = OPENING;
    next[at + OWN] = ballot;
    next[at + SUPERSEDED_THEN] = next[this.at.superseded]!;
  }

  /**
   * A quarantine outlasts each open round that had a reply from here when the data was lost. A longer one only forbids.
   */
  private quarantined(state: Uint8Array, m: number): boolean {
    if (this.weak.has('no quarantine')) return false;
    for (let c = 0; c < this.options.holders.length; c += 1) {
      if (state[this.at.holder(c) + PHASE] !== OPENING) continue;
      if ((state[this.at.knows(c, m)]! & (NOTED | REPLIED)) === REPLIED) return true;
    }
    return false;
  }

  private openOnEach(state: Uint8Array, c: number, emit: Emit): void {
    for (let m = 0; m < this.options.masters; m += 1) this.reply(state, c, m, emit);
  }

  private open(state: Uint8Array, c: number, emit: Emit): void {
    this.openOnEach(state, c, emit);
    const replies = this.at.count(state, c, REPLIED);
    if (replies < this.quorum) return;
    for (let seq = 0; seq <= this.options.holders[c]!.length; seq += 1) this.send(state, c, seq, emit);
    if (!this.skips(state, c, replies)) return;
    const next = this.copy(state);
    next[this.at.holder(c) + PHASE] = RESTING;
    this.returned(next, c);
    this.emit(next, 'skip', emit, { c });
  }

  // Protocol 10.6
  private skips(state: Uint8Array, c: number, replies: number): boolean {
    const at = this.at.holder(c);
    if (this.weak.has('no write-back')) return true;
    if (this.weak.has('nothing is not written back') && state[at + READ_VALUE] === 0) return true;
    const enough = replies === this.options.masters || this.weak.has('write-back skipped when a quorum agrees');
    return enough && (state[at + FLAGS]! & DISAGREE) === 0;
  }

  private reply(state: Uint8Array, c: number, m: number, emit: Emit): void {
    const at = this.at.holder(c);
    const there = this.at.master(m);
    if (!this.runs(state, c, m) || (state[this.at.knows(c, m)]! & REPLIED) !== 0) return;
    // Protocol 10.3
    if (state[there + COUNTS] === 0 && !this.weak.has('replies of other data count')) {
      if (this.weak.has('open marks the data as written')) this.mark(state, c, m, emit);
      return;
    }
    const ahead = state[at + OWN]! - state[there + PROMISE]!;
    // Protocol 10.5
    const refused = this.weak.has('numbers are not unique, equal ones are promised') ? ahead < 0 : ahead <= 0;
    if (refused && !this.weak.has('a refused open counts')) return;
    const next = this.copy(state);
    if (!this.weak.has('no promise on read') && !refused) next[there + PROMISE] = state[at + OWN]!;
    next[this.at.knows(c, m)]! |= REPLIED;
    const newer = compare(state, there + BALLOT, at + READ);
    const differs = this.weak.has('write-back skipped when all agree on the value')
      ? state[there + VALUE] !== state[at + READ_VALUE]
      : newer !== 0;
    const first = this.at.count(state, c, REPLIED) === 0;
    if (differs && !first) next[at + FLAGS]! |= DISAGREE;
    if (newer > 0) next.copyWithin(at + READ, there + BALLOT, there + VALUE + 1);
    if (this.opened(next, c)) this.overtake(next, c);
    this.emit(next, 'reply', emit, { c, m });
  }

  /** The promise makes an entry, and the next open takes its master for one that was written. */
  private mark(state: Uint8Array, c: number, m: number, emit: Emit): void {
    const next = this.copy(state);
    next[this.at.master(m) + COUNTS] = 1;
    this.emit(next, 'reply', emit, { c, m });
  }

  private overtake(next: Uint8Array, c: number): void {
    for (let other = 0; other < this.options.holders.length; other += 1) {
      const flags = this.at.holder(other) + FLAGS;
      if (other !== c && (next[flags]! & GOT) !== 0) next[flags]! |= OVERTAKEN;
    }
  }

  /**
   * Sends a write that reaches a first master. The writes before it were acknowledged, or given up with an unknown
   * result, and can still arrive.
   */
  private send(state: Uint8Array, c: number, seq: number, emit: Emit): void {
    const at = this.at.holder(c);
    const sent = state.slice();
    sent[at + PHASE] = WRITING;
    sent[at + SENT] = seq;
    if (this.options.holders[c]![seq - 1] === 'repeat') sent[at + SUPERSEDED_THEN] = state[this.at.superseded]!;
    const both =
      this.weak.has('two sets in flight') && seq === 2 && state[at + SENT] === 1 && state[at + PHASE] === WRITING;
    for (let m = 0; m < this.options.masters; m += 1) {
      const knows = this.at.knows(c, m);
      const before = both && (sent[knows]! & ACK) !== 0 ? ACK_BEFORE : 0;
      sent[knows] = (sent[knows]! & NOTED) | before;
    }
    if (both) sent[at + FLAGS]! |= BOTH;
    for (let m = 0; m < this.options.masters; m += 1) this.write(sent, { c, m, seq }, emit);
  }

  private proceed(state: Uint8Array, c: number, emit: Emit): void {
    const at = this.at.holder(c);
    const sent = state[at + SENT]!;
    for (let m = 0; m < this.options.masters; m += 1) {
      for (let seq = 0; seq <= sent; seq += 1) this.write(state, { c, m, seq }, emit);
    }
    for (let seq = sent + 1; seq <= this.options.holders[c]!.length; seq += 1) this.send(state, c, seq, emit);
    // Protocol 10.6
    if (!this.weak.has('a later get answers from memory') || state[at + PHASE] !== RESTING || sent > 0) return;
    const next = this.copy(state);
    next[at + SUPERSEDED_THEN] = state[this.at.superseded]!;
    this.returned(next, c);
    this.emit(next, 'again', emit, { c });
  }

  /**
   * A write reaches a master: the newest one, or an earlier one that is late and whose answer is ignored.
   * Protocol 10.7.
   */
  private write(state: Uint8Array, write: Write, emit: Emit): void {
    const { c, m, seq } = write;
    const at = this.at.holder(c);
    const there = this.at.master(m);
    if (!this.runs(state, c, m)) return;
    if (state[at + OWN]! < state[there + PROMISE]! && !this.weak.has('no promise on read')) return;
    const old = seq === 0 && this.weak.has('write-back under the old version');
    const ballot = old ? state[at + READ]! : state[at + OWN]!;
    const number = old ? state[at + READ_SEQ]! : this.numbered(seq);
    const newer = ballot - state[there + BALLOT]! || number - state[there + SEQ]!;
    if (newer < 0) return;
    const written = state.slice();
    const changes = newer > 0 || state[there + COUNTS] === 0;
    if (changes) {
      written[there + BALLOT] = ballot;
      written[there + SEQ] = number;
      written[there + VALUE] = seq === 0 ? state[at + READ_VALUE]! : this.values[c]![seq]!;
      written[there + COUNTS] = 1;
    }
    const newest = seq === state[at + SENT];
    if (changes) this.emit(this.copy(written), newest ? 'lost' : 'late', emit, write);
    if (newest && state[at + PHASE] === WRITING) this.acknowledge(written, write, ACK, emit);
    const before = seq === state[at + SENT]! - 1 && (state[at + FLAGS]! & BOTH) !== 0;
    if (before) this.acknowledge(written, write, ACK_BEFORE, emit);
  }

  private numbered(seq: number): number {
    return this.weak.has('seq not raised for the next value') ? Math.min(seq, 1) : seq;
  }

  private acknowledge(written: Uint8Array, write: Write, bit: number, emit: Emit): void {
    const { c, m, seq } = write;
    if ((written[this.at.knows(c, m)]! & bit) !== 0) return;
    const next = this.copy(written);
    next[this.at.knows(c, m)]! |= bit;
    if (this.at.count(next, c, bit) >= this.quorum) {
      const at = this.at.holder(c);
      if (bit === ACK) next[at + PHASE] = RESTING;
      else next[at + FLAGS]! &= ~BOTH;
      if (seq === 0) this.returned(next, c);
      else this.acknowledged(next, c, seq);
    }
    this.emit(next, 'write', emit, write);
  }

  private acknowledged(next: Uint8Array, c: number, seq: number): void {
    const at = this.at.holder(c);
    for (let other = 0; other < this.options.holders.length; other += 1) {
      const there = this.at.holder(other);
      if (other === c || !this.opened(next, other) || next[there + OWN]! < next[at + OWN]!) continue;
      const read = next[there + READ]! - next[at + OWN]! || next[there + READ_SEQ]! - this.numbered(seq);
      if (read < 0) next[this.at.broken] = NOT_READ;
    }
    if ((next[at + FLAGS]! & OVERTAKEN) !== 0) next[this.at.broken] = OPENED;
    const value = this.values[c]![seq]!;
    // Whether a get repeats the set or the caller does, what it confirms must not have been superseded.
    if (this.options.holders[c]![seq - 1] === 'repeat') this.confirm(next, c, value);
    this.supersede(next, c, { value, seq });
  }

  private returned(next: Uint8Array, c: number): void {
    const at = this.at.holder(c);
    const value = next[at + READ_VALUE]!;
    if (this.weak.has('no holder opens before the acknowledgement')) next[at + FLAGS]! |= GOT;
    this.confirm(next, c, value);
    this.supersede(next, c, { value, seq: 0 });
  }

  private confirm(next: Uint8Array, c: number, value: number): void {
    if ((next[this.at.holder(c) + SUPERSEDED_THEN]! & (1 << value)) !== 0) next[this.at.broken] = REPLACED;
  }

  /**
   * Once a value is confirmed under a version, a get that begins later must return no other value that was set under a
   * smaller one. An opened holder may have sent all that it will ever send.
   */
  private supersede(next: Uint8Array, c: number, confirmed: { readonly value: number; readonly seq: number }): void {
    const own = next[this.at.holder(c) + OWN]!;
    for (const [value, setter] of this.setters.entries()) {
      if (value === confirmed.value) continue;
      if (setter.holder >= 0) {
        if (!this.opened(next, setter.holder)) continue;
        if ((next[this.at.holder(setter.holder) + OWN]! - own || setter.seq - confirmed.seq) >= 0) continue;
      }
      next[this.at.superseded]! |= 1 << value;
    }
  }

  private opened(state: Uint8Array, c: number): boolean {
    const phase = state[this.at.holder(c) + PHASE]!;
    return phase >= WRITING || (phase === OPENING && this.at.count(state, c, REPLIED) >= this.quorum);
  }

  // Protocol 10.4
  private runs(state: Uint8Array, c: number, m: number): boolean {
    if ((state[this.at.knows(c, m)]! & NOTED) === 0 && !this.weak.has('no noted nonce')) return false;
    return !this.quarantined(state, m);
  }

  private lose(state: Uint8Array, m: number, emit: Emit): void {
    if (state[this.at.losses] === 0) return;
    const next = this.copy(state);
    next[this.at.losses]! -= 1;
    this.at.clear(next, m);
    this.restore(next, m);
    next[this.at.master(m) + COUNTS] = 0;
    for (let c = 0; c < this.options.holders.length; c += 1) next[this.at.knows(c, m)]! &= ~NOTED;
    this.emit(next, 'loss', emit, { m });
  }

  private restore(state: Uint8Array, m: number): void {
    if (!this.options.stale) return;
    state[this.at.master(m) + BALLOT] = 1;
    state[this.at.master(m) + VALUE] = 1;
  }

  private expire(state: Uint8Array, m: number, emit: Emit): void {
    const there = this.at.master(m);
    if (this.weak.has('a promise expires') && state[there + PROMISE] !== 0) {
      const next = this.copy(state);
      next[there + PROMISE] = 0;
      this.emit(next, 'expire', emit, { m });
    }
    // What the first holder sets expires before the old entry does.
    const first = this.at.holder(0);
    if (!this.weak.has('a newer value expires before an older one') || state[first + PHASE] !== RESTING) return;
    if (state[first + SENT] === 0 || state[there + BALLOT] !== state[first + OWN]) return;
    const next = this.copy(state);
    this.at.clear(next, m);
    this.emit(next, 'expire', emit, { m });
  }

  /** A client found a new installation, and writes its marker after the data was written by others and lost. */
  private install(state: Uint8Array, m: number, emit: Emit): void {
    if (!this.weak.has('a reset master passes for a new installation') || state[this.at.master(m) + COUNTS] !== 0)
      return;
    const next = this.copy(state);
    next[this.at.master(m) + COUNTS] = 1;
    this.emit(next, 'install', emit, { m });
  }

  private emit(next: Uint8Array, step: Step, emit: Emit, { c = 0, m = 0, seq = 0 }: Partial<Write>): void {
    this.forget(next);
    this.at.renumber(next, this.oldBallots);
    if (this.options.sorted) this.at.sort(next);
    emit(next, steps.action(step, c, m, seq));
  }

  /** Drops what no later step and no property depends on. */
  private forget(next: Uint8Array): void {
    let idle = false;
    for (let c = 0; c < this.options.holders.length; c += 1) {
      const phase = next[this.at.holder(c) + PHASE]!;
      if (phase === IDLE) idle = true;
      else if (phase !== OPENING) this.forgetHolder(next, c, phase);
    }
    if (!idle && !this.getsAgain) next[this.at.superseded] = 0;
  }

  private forgetHolder(next: Uint8Array, c: number, phase: number): void {
    const at = this.at.holder(c);
    let active = this.weak.has('no noted nonce') || this.weak.has('a later get answers from memory');
    for (let m = 0; m < this.options.masters; m += 1) {
      const knows = this.at.knows(c, m);
      const there = this.at.master(m);
      const refused = next[at + OWN]! < Math.max(next[there + PROMISE]!, next[there + BALLOT]!);
      if (refused && !this.forgetful) next[knows]! &= ~NOTED;
      next[knows]! &= ~REPLIED;
      if (phase === RESTING && (next[at + FLAGS]! & BOTH) === 0) next[knows]! &= ~(ACK | ACK_BEFORE);
      if ((next[knows]! & NOTED) !== 0) active = true;
    }
    if ((phase === RESTING || next[at + SENT]! > 0) && !this.getsAgain) next[at + SUPERSEDED_THEN] = 0;
    if (active) return;
    // No script of this holder runs any more. What it has read is compared once more when another set is acknowledged.
    next[at + PHASE] = RESTING;
    for (const field of [READ_VALUE, SENT, FLAGS, SUPERSEDED_THEN]) next[at + field] = 0;
    for (let m = 0; m < this.options.masters; m += 1) next[this.at.knows(c, m)] = 0;
  }

  private get getsAgain(): boolean {
    return this.repeats || this.weak.has('a later get answers from memory');
  }

  /** Whether what a master refuses now it may accept later. */
  private get forgetful(): boolean {
    return (
      this.weak.has('no promise on read') ||
      this.weak.has('a promise expires') ||
      this.weak.has('a newer value expires before an older one')
    );
  }

  describe(code: number): string {
    return steps.describe(code, NAMES);
  }

  show(state: Uint8Array): string {
    const { masters, holders } = this.options;
    const begun = holders.flatMap((_, c) => (state[this.at.holder(c) + PHASE] === IDLE ? [] : [c]));
    const own = (c: number): number => state[this.at.holder(c) + OWN]!;
    const order = begun.sort((left, right) => own(left) - own(right)).map((c) => NAMES[c]!);
    return [
      ...Array.from({ length: masters }, (_, m) => this.showMaster(state, m)),
      ...holders.map((_, c) => this.showHolder(state, c)),
      order.join(' < '),
    ].join(' | ');
  }

  private showMaster(state: Uint8Array, m: number): string {
    const at = this.at.master(m);
    const ballot = state[at + BALLOT]!;
    const version = `${this.owner(state, ballot)}.${state[at + SEQ]!}`;
    const entry = ballot === 0 ? '-' : `${version}=${this.setters[state[at + VALUE]!]!.name}`;
    const promise = state[at + PROMISE] === 0 ? '' : ` promised ${this.owner(state, state[at + PROMISE]!)}`;
    return `m${m + 1} ${entry}${promise}${state[at + COUNTS] === 0 ? ' lost' : ''}`;
  }

  private showHolder(state: Uint8Array, c: number): string {
    const at = this.at.holder(c);
    switch (state[at + PHASE]!) {
      case IDLE:
        return `${NAMES[c]!} -`;
      case OPENING:
        return `${NAMES[c]!} opens ${this.mask(state, c, REPLIED)} read ${this.setters[state[at + READ_VALUE]!]!.name}`;
      case WRITING:
        return `${NAMES[c]!}.${state[at + SENT]!} ${this.mask(state, c, ACK)}`;
      default:
        return `${NAMES[c]!}.${state[at + SENT]!} done`;
    }
  }

  private owner(state: Uint8Array, ballot: number): string {
    const owners = this.roles.flatMap((_, c) => (state[this.at.holder(c) + OWN] === ballot ? [NAMES[c]!] : []));
    return owners.length === 0 ? 'old' : owners.join('=');
  }

  private mask(state: Uint8Array, c: number, bit: number): string {
    const masters = Array.from({ length: this.options.masters }, (_, m) =>
      (state[this.at.knows(c, m)]! & bit) === 0 ? [] : [`m${m + 1}`],
    );
    return `[${masters.flat().join(' ')}]`;
  }
}

function compare(state: Uint8Array, left: number, right: number): number {
  return state[left]! - state[right]! || state[left + 1]! - state[right + 1]!;
}
