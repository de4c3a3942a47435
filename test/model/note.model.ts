import { type Emit } from './checker.js';
import { bitCount, mastersWhere, sortRecords, StateModel, stepsOf } from './states.js';

export interface NoteOptions {
  readonly masters: 3 | 5;
  /** What each holder may write after its open, in this order: a new value, or once more the value before it. */
  readonly holders: readonly (readonly ('set' | 'repeat')[])[];
  readonly losses: number;
  /** All masters have an old entry at first. */
  readonly written?: boolean;
  /** A lost master comes back with the old entry, instead of none. */
  readonly stale?: boolean;
  /** Losses go on when a majority has lost the value that was confirmed last. */
  readonly majorityLost?: boolean;
  /**
   * Scripts compare the key of the lock, and the keys of the first holder vanish so many times from a master. Otherwise they
   * compare none, so that any number of holders may be active at once.
   */
  readonly deletions?: number;
  /** Masters are interchangeable: fewer states, and counter-examples that are harder to read. */
  readonly sorted?: boolean;
  readonly without?: readonly string[];
}

/**
 * The fields of a master. CLAIM is the largest claim; numbers are numbered in their order, from one; 0 is none. COUNTS: whether
 * the `from` of the entry is that of the marker. LOST_IT, a ghost: has lost the value that was confirmed last, and has not got
 * it back. OWNER is the holder of the key plus one.
 */
const [CLAIM, NUMBER, SEQ, VALUE, COUNTS, LOST_IT, OWNER, KNOWS] = [0, 1, 2, 3, 4, 5, 6, 7];

/**
 * What a holder knows of a master, as bits. NOTED: the `run` and `from` that it has noted are still those of the master.
 * OTHER: it has answered the open, and does not count.
 */
const [NOTED, REPLIED, OTHER, ACK] = [1, 2, 4, 8];

/**
 * The fields of a holder: of the newest version that the open has read, and its value, in the order of an entry; the newest
 * write that was sent, of which 0 is the write-back; and the values that were superseded when the get began.
 */
const [PHASE, OWN, READ, READ_SEQ, READ_VALUE, SENT, FLAGS, SUPERSEDED_THEN, HOLDER] = [0, 1, 2, 3, 4, 5, 6, 7, 8];

const RANKS = 64;

const [IDLE, HOLDING, OPENING, WRITING, RESTING] = [0, 1, 2, 3, 4];

/** Bits of FLAGS: the replies differ, the lock has ended, and the newest write was sent when a later holder had the lock. */
const [DIFFER, ENDED, LATE] = [1, 2, 4];

const [NOT_READ, REPLACED, NOT_OURS, STUCK, OUTSIDE] = [1, 2, 3, 4, 5];
const PROPERTIES = [
  undefined,
  'a set is acknowledged, and a holder with a larger number has opened without reading it',
  'a get returns a value that was superseded before it began',
  'a set is acknowledged that was sent when a later holder had the lock, which has it still',
  'all masters have replied, and the open does not succeed',
];

/** Values before those that holders set: nothing, and that of the old entry. */
const GIVEN = [
  { holder: -1, seq: 0, name: 'nothing' },
  { holder: -1, seq: 0, name: 'old' },
];

const NAMES = 'ABC';

const steps = stepsOf({
  acquire: (holder) => `${holder} acquires the lock`,
  end: (holder) => `${holder} releases the lock, or loses it`,
  grant: (holder, master) => `${master} sets the key of ${holder} late or again`,
  remove: (holder, master) => `the key of ${holder} vanishes from ${master}`,
  reply: (holder, master) => `${master} answers the open of ${holder}`,
  skip: (holder) => `${holder}'s get returns without a write`,
  write: (holder, master, seq) => `${master} acknowledges ${holder}.${seq}`,
  lost: (holder, master, seq) => `${master} stores ${holder}.${seq}, and its answer is lost`,
  late: (holder, master, seq) => `${master} stores ${holder}.${seq} late`,
  again: (holder) => `${holder}'s next get returns from memory`,
  loss: (_, master) => `${master} loses its data`,
  expire: (_, master) => `what ${master} stores expires`,
});
type Step = Parameters<typeof steps.action>[0];

interface Write {
  readonly c: number;
  readonly m: number;
  readonly seq: number;
}

class NoteLayout {
  readonly superseded: number;
  readonly losses: number;
  readonly deletions: number;
  readonly broken: number;
  /** Ghost: the version that was confirmed last. */
  readonly confirmed: number;
  readonly width: number;
  private readonly masterWidth: number;
  private readonly numbers: readonly number[];
  private readonly ranks = new Uint8Array(RANKS);
  readonly master = (m: number): number => m * this.masterWidth;
  readonly knows = (c: number, m: number): number => m * this.masterWidth + KNOWS + c;
  readonly holder = (c: number): number => this.masters * this.masterWidth + c * HOLDER;

  constructor(
    private readonly masters: number,
    holders: number,
  ) {
    this.masterWidth = KNOWS + holders;
    this.superseded = this.holder(holders);
    this.losses = this.superseded + 1;
    this.deletions = this.superseded + 2;
    this.broken = this.superseded + 3;
    this.confirmed = this.superseded + 4;
    this.width = this.superseded + 6;
    this.numbers = [
      ...Array.from({ length: masters }, (_, m) => [this.master(m) + CLAIM, this.master(m) + NUMBER]),
      ...Array.from({ length: holders }, (_, c) => [this.holder(c) + OWN, this.holder(c) + READ]),
      [this.confirmed],
    ].flat();
  }

  /** The number of masters for which a holder has this bit set. */
  count(state: Uint8Array, c: number, bit: number): number {
    let count = 0;
    for (let m = 0; m < this.masters; m += 1) if ((state[this.knows(c, m)]! & bit) !== 0) count += 1;
    return count;
  }

  clear(state: Uint8Array, m: number): void {
    state.fill(0, this.master(m), this.master(m) + COUNTS + 1);
  }

  highest(state: Uint8Array): number {
    let highest = 0;
    for (const at of this.numbers) highest = Math.max(highest, state[at]!);
    return highest;
  }

  /** Makes room for a number in the order of numbers. */
  shift(state: Uint8Array, from: number): void {
    for (const at of this.numbers) if (state[at]! >= from) state[at]! += 1;
  }

  /** Only the order of numbers matters: those above `fixed` get no gaps. */
  renumber(state: Uint8Array, fixed: number): void {
    const { ranks } = this;
    ranks.fill(0);
    for (const at of this.numbers) ranks[state[at]!] = 1;
    let rank = fixed;
    for (let number = 1; number < RANKS; number += 1) {
      if (number <= fixed) ranks[number] = number;
      else if (ranks[number] !== 0) ranks[number] = rank += 1;
    }
    ranks[0] = 0;
    for (const at of this.numbers) state[at] = ranks[state[at]!]!;
  }

  /** Masters are alike: any order of them is the same state. */
  sort(state: Uint8Array): void {
    sortRecords(state, { width: this.masterWidth, count: this.masters });
  }
}

/**
 * Section 10: a note over N masters, with one number for each holder.
 *
 * A refusal only forbids. What leaves a claim and nothing else is therefore left out, since the same steps without it are
 * explored: lost replies and repeated rounds of an open, and claims raised by a write. For the same reason a holder begins
 * when a first master answers its open.
 */
export class NoteModel extends StateModel<NoteOptions> {
  private readonly quorum: number;
  private readonly at: NoteLayout;
  /** Numbers that are smaller than those of all holders. */
  private readonly oldNumbers: number;
  private readonly values: readonly (readonly number[])[];
  private readonly setters: readonly { readonly holder: number; readonly seq: number; readonly name: string }[];
  private readonly roles: readonly string[];
  private readonly repeats: boolean;
  private readonly locks: boolean;

  constructor(options: NoteOptions) {
    const { masters, holders, written = false, deletions } = options;
    const at = new NoteLayout(masters, holders.length);
    super(options, at.width);
    this.at = at;
    this.quorum = Math.floor(masters / 2) + 1;
    this.oldNumbers = written ? 1 : 0;
    this.locks = deletions !== undefined;
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
    const { masters, losses, written, deletions = 0 } = this.options;
    const state = new Uint8Array(this.width);
    state[this.at.losses] = losses;
    state[this.at.deletions] = deletions;
    if (written) state[this.at.confirmed] = 1;
    for (let m = 0; written && m < masters; m += 1) {
      this.restore(state, m);
      state[this.at.master(m) + COUNTS] = 1;
    }
    return [state];
  }

  violation(state: Uint8Array): string | undefined {
    return PROPERTIES[state[this.at.broken]!];
  }

  successors(state: Uint8Array, emit: Emit): void {
    if (state[this.at.broken] === OUTSIDE) return;
    const { holders, masters } = this.options;
    for (let c = 0; c < holders.length; c += 1) {
      const phase = state[this.at.holder(c) + PHASE]!;
      if (this.locks) this.lock(state, c, emit);
      if (phase === IDLE || phase === HOLDING) {
        if (phase === HOLDING || !this.locks) this.begin(state, c, emit);
      } else if (phase === OPENING) this.open(state, c, emit);
      else this.proceed(state, c, emit);
    }
    for (let m = 0; m < masters; m += 1) {
      this.lose(state, m, emit);
      this.expire(state, m, emit);
    }
  }

  // The lock

  private lock(state: Uint8Array, c: number, emit: Emit): void {
    const at = this.at.holder(c);
    if (state[at + PHASE] === IDLE) {
      // Holders are in the order of their locks.
      if (c === 0 || state[this.at.holder(c - 1) + PHASE] !== IDLE) this.acquire(state, c, emit);
      return;
    }
    for (let m = 0; m < this.options.masters; m += 1) {
      this.grant(state, c, m, emit);
      this.remove(state, c, m, emit);
    }
    if ((state[at + FLAGS]! & ENDED) !== 0) return;
    const next = this.copy(state);
    next[at + FLAGS]! |= ENDED;
    this.emit(next, 'end', emit, { c });
  }

  /** A quorum of free masters. Others grant late. */
  private acquire(state: Uint8Array, c: number, emit: Emit): void {
    for (let chosen = 1; chosen < 1 << this.options.masters; chosen += 1) {
      if (bitCount(chosen) !== this.quorum) continue;
      const next = this.copy(state);
      let free = true;
      for (let m = 0; m < this.options.masters; m += 1) {
        if (((chosen >> m) & 1) === 0) continue;
        free &&= state[this.at.master(m) + OWNER] === 0 && !this.quarantined(state, m);
        next[this.at.master(m) + OWNER] = c + 1;
      }
      if (!free) continue;
      next[this.at.holder(c) + PHASE] = HOLDING;
      this.emit(next, 'acquire', emit, { c });
    }
  }

  private grant(state: Uint8Array, c: number, m: number, emit: Emit): void {
    if (state[this.at.master(m) + OWNER] !== 0 || this.quarantined(state, m)) return;
    const next = this.copy(state);
    next[this.at.master(m) + OWNER] = c + 1;
    this.emit(next, 'grant', emit, { c, m });
  }

  /** The key stays while its holder has the lock, but for the vanishing keys of the first holder. */
  private remove(state: Uint8Array, c: number, m: number, emit: Emit): void {
    if (state[this.at.master(m) + OWNER] !== c + 1) return;
    const vanishes = (state[this.at.holder(c) + FLAGS]! & ENDED) === 0;
    if (vanishes && (c > 0 || state[this.at.deletions] === 0)) return;
    const next = this.copy(state);
    next[this.at.master(m) + OWNER] = 0;
    if (vanishes) next[this.at.deletions]! -= 1;
    this.emit(next, 'remove', emit, { c, m });
  }

  private laterHolder(state: Uint8Array, c: number): boolean {
    for (let other = c + 1; other < this.options.holders.length; other += 1) {
      const there = this.at.holder(other);
      if (state[there + PHASE] !== IDLE && (state[there + FLAGS]! & ENDED) === 0) return true;
    }
    return false;
  }

  // Open

  /**
   * Draws a number, new or equal to another one, because clocks are arbitrary, and notes what `run` and `from` each master
   * has. Protocol 10.3 and 10.4.
   */
  private begin(state: Uint8Array, c: number, emit: Emit): void {
    if (this.waits(state, c)) return;
    const highest = Math.max(this.oldNumbers, this.at.highest(state));
    for (let number = this.oldNumbers + 1; number <= highest + 1; number += 1) {
      const begun = state.slice();
      this.at.shift(begun, number);
      this.note(begun, c, number);
      this.open(begun, c, emit);
      if (number > highest) continue;
      begun.set(state);
      this.note(begun, c, number);
      this.open(begun, c, emit);
    }
  }

  /** Holders that do the same are alike: they begin in the order of their names. */
  private waits(state: Uint8Array, c: number): boolean {
    if (this.locks) return false;
    for (let other = 0; other < c; other += 1) {
      if (this.roles[other] === this.roles[c] && state[this.at.holder(other) + PHASE] === IDLE) return true;
    }
    return false;
  }

  private note(next: Uint8Array, c: number, number: number): void {
    for (let m = 0; m < this.options.masters; m += 1) {
      const noted = !this.quarantined(next, m) || this.weak.has('a master is noted in its quarantine');
      if (noted) next[this.at.knows(c, m)] = NOTED;
    }
    const at = this.at.holder(c);
    next[at + PHASE] = OPENING;
    next[at + OWN] = number;
    next[at + SUPERSEDED_THEN] = next[this.at.superseded]!;
  }

  /**
   * A quarantine outlasts each open round that had a reply from here when the data was lost. A longer one only forbids.
   */
  private quarantined(state: Uint8Array, m: number): boolean {
    if (this.weak.has('no quarantine, or an open that outlasts it')) return false;
    for (let c = 0; c < this.options.holders.length; c += 1) {
      if (state[this.at.holder(c) + PHASE] !== OPENING) continue;
      const knows = state[this.at.knows(c, m)]!;
      if ((knows & NOTED) === 0 && (knows & (REPLIED | OTHER)) !== 0) return true;
    }
    return false;
  }

  /** A quorum of replies that count, or all N of any kind: Protocol 10.3. */
  private enough(state: Uint8Array, c: number): boolean {
    const counting = this.at.count(state, c, REPLIED);
    if (counting >= this.quorum) return true;
    const all = counting + this.at.count(state, c, OTHER);
    if (this.weak.has('any quorum of replies counts')) return all >= this.quorum;
    return all === this.options.masters && !this.weak.has('never all N replies');
  }

  private open(state: Uint8Array, c: number, emit: Emit): void {
    for (let m = 0; m < this.options.masters; m += 1) this.reply(state, c, m, emit);
    if (!this.enough(state, c)) return;
    for (let seq = 0; seq <= this.options.holders[c]!.length; seq += 1) this.send(state, c, seq, emit);
    if (!this.skips(state, c)) return;
    const next = this.copy(state);
    next[this.at.holder(c) + PHASE] = RESTING;
    this.returned(next, c);
    this.emit(next, 'skip', emit, { c });
  }

  private reply(state: Uint8Array, c: number, m: number, emit: Emit): void {
    const at = this.at.holder(c);
    const there = this.at.master(m);
    const knows = this.at.knows(c, m);
    if (!this.runs(state, c, m) || (state[knows]! & (REPLIED | OTHER)) !== 0) return;
    const ahead = state[at + OWN]! - Math.max(state[there + CLAIM]!, state[there + NUMBER]!);
    const refused = this.weak.has('an equal number is accepted') ? ahead < 0 : ahead <= 0;
    if (refused && !this.weak.has('a refused open counts')) return;
    const next = this.copy(state);
    if (!refused && !this.weak.has('no claim on read')) next[there + CLAIM] = state[at + OWN]!;
    // Protocol 10.2
    const counts = state[there + COUNTS] === 1;
    if (this.weak.has('an open makes the entry count')) next[there + COUNTS] = 1;
    const newer = compare(state, there + NUMBER, at + READ);
    const first = (this.at.count(state, c, REPLIED) | this.at.count(state, c, OTHER)) === 0;
    if (!counts || (newer !== 0 && !first)) next[at + FLAGS]! |= DIFFER;
    if (newer > 0) next.copyWithin(at + READ, there + NUMBER, there + VALUE + 1);
    next[knows]! |= counts ? REPLIED : OTHER;
    const replies = this.at.count(next, c, REPLIED) + this.at.count(next, c, OTHER);
    if (replies === this.options.masters && !this.enough(next, c)) next[this.at.broken] ||= STUCK;
    this.emit(next, 'reply', emit, { c, m });
  }

  /** Protocol 10.4 and 10.5. */
  private runs(state: Uint8Array, c: number, m: number): boolean {
    const noted = (state[this.at.knows(c, m)]! & NOTED) !== 0;
    if (!noted && !this.weak.has('scripts without the noted `run` and `from`')) return false;
    const ours = !this.locks || state[this.at.master(m) + OWNER] === c + 1;
    if (!ours && !this.weak.has('a write while the key is not ours')) return false;
    return !this.quarantined(state, m);
  }

  // Get and set

  /** Protocol 10.6. */
  private skips(state: Uint8Array, c: number): boolean {
    const at = this.at.holder(c);
    if (this.weak.has('no write-back')) return true;
    if (this.weak.has('nothing is not written back') && state[at + READ_VALUE] === 0) return true;
    const all = this.at.count(state, c, REPLIED) === this.options.masters;
    return (all || this.weak.has('write-back skipped when a quorum agrees')) && (state[at + FLAGS]! & DIFFER) === 0;
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
    sent[at + FLAGS]! &= ~LATE;
    if (this.locks && this.laterHolder(state, c)) sent[at + FLAGS]! |= LATE;
    if (this.options.holders[c]![seq - 1] === 'repeat') sent[at + SUPERSEDED_THEN] = state[this.at.superseded]!;
    for (let m = 0; m < this.options.masters; m += 1) sent[this.at.knows(c, m)]! &= NOTED;
    for (let m = 0; m < this.options.masters; m += 1) this.write(sent, { c, m, seq }, emit);
  }

  private proceed(state: Uint8Array, c: number, emit: Emit): void {
    const at = this.at.holder(c);
    const sent = state[at + SENT]!;
    for (let m = 0; m < this.options.masters; m += 1) {
      for (let seq = 0; seq <= sent; seq += 1) this.write(state, { c, m, seq }, emit);
    }
    for (let seq = sent + 1; seq <= this.options.holders[c]!.length; seq += 1) this.send(state, c, seq, emit);
    if (!this.weak.has('a later get answers from memory') || state[at + PHASE] !== RESTING || sent > 0) return;
    const next = this.copy(state);
    next[at + SUPERSEDED_THEN] = state[this.at.superseded]!;
    this.returned(next, c);
    this.emit(next, 'again', emit, { c });
  }

  /**
   * A write reaches a master: the newest one, or an earlier one that is late and whose answer is ignored.
   * Protocol 10.5.
   */
  private write(state: Uint8Array, write: Write, emit: Emit): void {
    const { c, m, seq } = write;
    const at = this.at.holder(c);
    const there = this.at.master(m);
    if (!this.runs(state, c, m)) return;
    if (state[at + OWN]! < state[there + CLAIM]! && !this.weak.has('no claim on read')) return;
    const version = this.version(state, c, seq);
    // Protocol 10.1
    const newer = version[0] - state[there + NUMBER]! || version[1] - state[there + SEQ]!;
    const lower = newer < 0 && this.weak.has('a lower version replaces a higher one');
    if (newer < 0 && !lower) return;
    const written = state.slice();
    const changes = newer !== 0 || state[there + COUNTS] === 0;
    const newest = seq === state[at + SENT];
    if (changes) {
      written.set(version, there + NUMBER);
      written[there + VALUE] = seq === 0 ? state[at + READ_VALUE]! : this.values[c]![seq]!;
      written[there + COUNTS] = 1;
      if (this.hasConfirmed(written, m)) written[there + LOST_IT] = 0;
      this.emit(this.copy(written), newest ? 'lost' : 'late', emit, write);
    }
    if (newest && state[at + PHASE] === WRITING) this.acknowledge(written, write, emit);
  }

  private version(state: Uint8Array, c: number, seq: number): readonly [number, number] {
    const at = this.at.holder(c);
    if (seq === 0 && this.weak.has('write-back under the old version'))
      return [state[at + READ]!, state[at + READ_SEQ]!];
    return [state[at + OWN]!, this.numbered(seq)];
  }

  private numbered(seq: number): number {
    return this.weak.has('sequence not raised for the next value') ? Math.min(seq, 1) : seq;
  }

  private acknowledge(written: Uint8Array, write: Write, emit: Emit): void {
    const { c, m, seq } = write;
    if ((written[this.at.knows(c, m)]! & ACK) !== 0) return;
    const next = this.copy(written);
    next[this.at.knows(c, m)]! |= ACK;
    if (this.at.count(next, c, ACK) >= this.quorum) {
      next[this.at.holder(c) + PHASE] = RESTING;
      this.noteConfirmed(next, c, seq);
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
      // Claims are data, too: a majority that has lost them lets both holders open.
      if (read < 0 && this.options.losses <= this.options.masters - this.quorum) next[this.at.broken] ||= NOT_READ;
    }
    // Protocol 10.7
    if ((next[at + FLAGS]! & LATE) !== 0 && this.laterHolder(next, c)) next[this.at.broken] ||= NOT_OURS;
    const value = this.values[c]![seq]!;
    // Whether a get repeats the set or the caller does, what it confirms must not have been superseded.
    if (this.options.holders[c]![seq - 1] === 'repeat') this.confirm(next, c, value);
    this.supersede(next, c, { value, seq });
  }

  private returned(next: Uint8Array, c: number): void {
    const value = next[this.at.holder(c) + READ_VALUE]!;
    this.confirm(next, c, value);
    this.supersede(next, c, { value, seq: 0 });
  }

  private confirm(next: Uint8Array, c: number, value: number): void {
    if ((next[this.at.holder(c) + SUPERSEDED_THEN]! & (1 << value)) !== 0) next[this.at.broken] ||= REPLACED;
  }

  /**
   * Once a value is confirmed under a version, a get that begins later must return no other value that was set under a
   * smaller one. An opened holder may have sent all that it will ever send.
   */
  private supersede(next: Uint8Array, c: number, confirmed: { value: number; seq: number }): void {
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
    return phase >= WRITING || (phase === OPENING && this.enough(state, c));
  }

  // Losses

  private lose(state: Uint8Array, m: number, emit: Emit): void {
    if (state[this.at.losses] === 0) return;
    const has = this.hasConfirmed(state, m);
    // Promise 4: only a minority has lost the value since it was last written to a majority.
    if (has && !this.options.majorityLost && this.lostBy(state) + 1 >= this.quorum) return;
    const next = this.copy(state);
    next[this.at.losses]! -= 1;
    this.at.clear(next, m);
    next[this.at.master(m) + OWNER] = 0;
    if (has) next[this.at.master(m) + LOST_IT] = 1;
    if (this.options.stale) this.restore(next, m);
    for (let c = 0; c < this.options.holders.length; c += 1) next[this.at.knows(c, m)]! &= ~NOTED;
    this.emit(next, 'loss', emit, { m });
  }

  private restore(state: Uint8Array, m: number): void {
    state[this.at.master(m) + NUMBER] = 1;
    state[this.at.master(m) + VALUE] = 1;
  }

  private hasConfirmed(state: Uint8Array, m: number): boolean {
    return state[this.at.confirmed]! > 0 && compare(state, this.at.master(m) + NUMBER, this.at.confirmed) >= 0;
  }

  private lostBy(state: Uint8Array): number {
    let lost = 0;
    for (let m = 0; m < this.options.masters; m += 1) lost += state[this.at.master(m) + LOST_IT]!;
    return lost;
  }

  /** Ghost: the masters that have acknowledged this version are a majority. */
  private noteConfirmed(next: Uint8Array, c: number, seq: number): void {
    const version = this.version(next, c, seq);
    const newer = version[0] - next[this.at.confirmed]! || version[1] - next[this.at.confirmed + 1]!;
    if (newer < 0) return;
    next.set(version, this.at.confirmed);
    for (let m = 0; m < this.options.masters; m += 1) {
      const lost = (next[this.at.knows(c, m)]! & ACK) !== 0 && !this.hasConfirmed(next, m);
      next[this.at.master(m) + LOST_IT] = lost ? 1 : 0;
    }
    // A majority has lost it before the last answer arrived.
    if (this.lostBy(next) >= this.quorum && !this.options.majorityLost) next[this.at.broken] = OUTSIDE;
  }

  private expire(state: Uint8Array, m: number, emit: Emit): void {
    const there = this.at.master(m);
    if (this.weak.has('a claim expires') && state[there + CLAIM] !== 0) {
      const next = this.copy(state);
      next[there + CLAIM] = 0;
      this.emit(next, 'expire', emit, { m });
    }
    // What the first holder sets expires before the old entry does.
    const first = this.at.holder(0);
    if (!this.weak.has('a newer value expires before an older one') || state[first + PHASE] !== RESTING) return;
    if (state[first + SENT] === 0 || state[there + NUMBER] !== state[first + OWN]) return;
    const next = this.copy(state);
    this.at.clear(next, m);
    this.emit(next, 'expire', emit, { m });
  }

  private emit(next: Uint8Array, step: Step, emit: Emit, { c = 0, m = 0, seq = 0 }: Partial<Write>): void {
    this.forget(next);
    this.at.renumber(next, this.oldNumbers);
    if (this.options.sorted) this.at.sort(next);
    emit(next, steps.action(step, c, m, seq));
  }

  /** Drops what no later step and no property depends on. */
  private forget(next: Uint8Array): void {
    let reading = false;
    for (let c = 0; c < this.options.holders.length; c += 1) {
      const phase = next[this.at.holder(c) + PHASE]!;
      if (phase < OPENING) reading = true;
      else if (phase !== OPENING) this.forgetHolder(next, c, phase);
    }
    if (!reading && !this.getsAgain) next[this.at.superseded] = 0;
  }

  private forgetHolder(next: Uint8Array, c: number, phase: number): void {
    const at = this.at.holder(c);
    let active =
      this.weak.has('scripts without the noted `run` and `from`') || this.weak.has('a later get answers from memory');
    for (let m = 0; m < this.options.masters; m += 1) {
      const knows = this.at.knows(c, m);
      const there = this.at.master(m);
      const refused = next[at + OWN]! < Math.max(next[there + CLAIM]!, next[there + NUMBER]!);
      if (refused && !this.forgetful) next[knows]! &= ~NOTED;
      next[knows]! &= ~(REPLIED | OTHER);
      if (phase === RESTING) next[knows]! &= ~ACK;
      if ((next[knows]! & NOTED) !== 0) active = true;
    }
    next[at + FLAGS]! &= ~DIFFER;
    if ((phase === RESTING || next[at + SENT]! > 0) && !this.getsAgain) next[at + SUPERSEDED_THEN] = 0;
    if (active) return;
    // No script of this holder runs any more. What it has read is compared once more when another set is acknowledged.
    next[at + PHASE] = RESTING;
    next[at + FLAGS]! &= ENDED;
    for (const field of [READ_VALUE, SENT, SUPERSEDED_THEN]) next[at + field] = 0;
    for (let m = 0; m < this.options.masters; m += 1) next[this.at.knows(c, m)] = 0;
  }

  private get getsAgain(): boolean {
    return this.repeats || this.weak.has('a later get answers from memory');
  }

  /** Whether what a master refuses now it may accept later. */
  private get forgetful(): boolean {
    return (
      this.weak.has('no claim on read') ||
      this.weak.has('a claim expires') ||
      this.weak.has('a lower version replaces a higher one') ||
      this.weak.has('a newer value expires before an older one')
    );
  }

  readonly describe = (code: number): string => steps.describe(code, NAMES);

  show(state: Uint8Array): string {
    const { masters, holders } = this.options;
    const begun = holders.flatMap((_, c) => (state[this.at.holder(c) + PHASE]! < OPENING ? [] : [c]));
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
    const number = state[at + NUMBER]!;
    const owner = this.locks ? ` ${state[at + OWNER] === 0 ? '-' : NAMES[state[at + OWNER]! - 1]!}` : '';
    const version = `${this.owner(state, number)}.${state[at + SEQ]!}`;
    const entry = number === 0 ? '-' : `${version}=${this.setters[state[at + VALUE]!]!.name}`;
    const claim = state[at + CLAIM] === 0 ? '' : ` claimed by ${this.owner(state, state[at + CLAIM]!)}`;
    return `m${m + 1}${owner} ${entry}${claim}${number > 0 && state[at + COUNTS] === 0 ? ' of other data' : ''}`;
  }

  private showHolder(state: Uint8Array, c: number): string {
    const at = this.at.holder(c);
    const name = `${NAMES[c]!}${(state[at + FLAGS]! & ENDED) === 0 ? '' : ' (ended)'}`;
    switch (state[at + PHASE]!) {
      case IDLE:
        return `${name} -`;
      case HOLDING:
        return `${name} holds`;
      case OPENING:
        return `${name} opens ${this.mask(state, c, REPLIED | OTHER)} read ${this.setters[state[at + READ_VALUE]!]!.name}`;
      case WRITING:
        return `${name}.${state[at + SENT]!} ${this.mask(state, c, ACK)}`;
      default:
        return `${name}.${state[at + SENT]!} done`;
    }
  }

  private owner(state: Uint8Array, number: number): string {
    const owners = this.roles.flatMap((_, c) => (state[this.at.holder(c) + OWN] === number ? [NAMES[c]!] : []));
    return owners.length === 0 ? 'old' : owners.join('=');
  }

  private mask(state: Uint8Array, c: number, bits: number): string {
    return mastersWhere(this.options.masters, (m) => (state[this.at.knows(c, m)]! & bits) !== 0);
  }
}

function compare(state: Uint8Array, left: number, right: number): number {
  return state[left]! - state[right]! || state[left + 1]! - state[right + 1]!;
}
