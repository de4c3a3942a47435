// Where the model of the note keeps what, and the canonical form of its states.
import { sortRecords } from './states.js';

/** The largest claim. Numbers are numbered in their order, from one; 0 is none. */
export const CLAIM = 0;
export const NUMBER = 1;
export const SEQ = 2;
export const VALUE = 3;
/** Whether the `from` of the entry is that of the marker. */
export const COUNTS = 4;
/** Ghost: has lost the value that was confirmed last, and has not got it back. */
export const LOST_IT = 5;
/** The holder of the key plus one. */
export const OWNER = 6;
const KNOWS = 7;

/** What a holder knows of a master. The `run` and `from` that it has noted are still those of the master. */
export const NOTED = 1;
export const REPLIED = 2;
/** Has answered the open, and does not count. */
export const OTHER = 4;
export const ACK = 8;

export const PHASE = 0;
export const OWN = 1;
/** The newest version that the open has read, and its value, in the order of an entry. */
export const READ = 2;
export const READ_SEQ = 3;
export const READ_VALUE = 4;
/** The newest write that was sent: 0 is the write-back. */
export const SENT = 5;
export const FLAGS = 6;
/** Values that were superseded when the get began. */
export const SUPERSEDED_THEN = 7;
const HOLDER = 8;

const RANKS = 64;

/** Offsets of the fields of a state: masters, holders, and what is kept once. */
export class NoteLayout {
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

  constructor(
    private readonly masters: number,
    holders: number,
  ) {
    this.masterWidth = KNOWS + holders;
    this.superseded = masters * this.masterWidth + holders * HOLDER;
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

  master(m: number): number {
    return m * this.masterWidth;
  }

  knows(c: number, m: number): number {
    return m * this.masterWidth + KNOWS + c;
  }

  holder(c: number): number {
    return this.masters * this.masterWidth + c * HOLDER;
  }

  /** The number of masters for which a holder has this bit set. */
  count(state: Uint8Array, c: number, bit: number): number {
    let count = 0;
    for (let m = 0; m < this.masters; m += 1) if ((state[this.knows(c, m)]! & bit) !== 0) count += 1;
    return count;
  }

  /** Removes an entry and its claim. */
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
