// Where the model of section 10 keeps what, and the canonical form of its states.
import { sortRecords } from './states.js';

/** Highest promised ballot. Ballots are numbered in their order, from one; 0 is none. */
export const PROMISE = 0;
export const BALLOT = 1;
export const SEQ = 2;
export const VALUE = 3;
/** Whether a reply counts: the entry was written under the data of the marker, or there is none and the data is whole. */
export const COUNTS = 4;
const KNOWS = 5;

/** What a holder knows of a master. The nonce that it noted is still that of the data. */
export const NOTED = 1;
export const REPLIED = 2;
export const ACK = 4;
/** Acknowledged the write before, if two are in flight. */
export const ACK_BEFORE = 8;

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
export class ResourceStateLayout {
  readonly superseded: number;
  readonly losses: number;
  readonly broken: number;
  readonly width: number;
  private readonly masterWidth: number;
  private readonly ballots: readonly number[];
  private readonly ranks = new Uint8Array(RANKS);

  constructor(
    private readonly masters: number,
    holders: number,
  ) {
    this.masterWidth = KNOWS + holders;
    this.superseded = masters * this.masterWidth + holders * HOLDER;
    this.losses = this.superseded + 1;
    this.broken = this.superseded + 2;
    this.width = this.superseded + 3;
    this.ballots = [
      ...Array.from({ length: masters }, (_, m) => [this.master(m) + PROMISE, this.master(m) + BALLOT]),
      ...Array.from({ length: holders }, (_, c) => [this.holder(c) + OWN, this.holder(c) + READ]),
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

  /** Removes an entry and its promise. */
  clear(state: Uint8Array, m: number): void {
    state.fill(0, this.master(m), this.master(m) + COUNTS);
  }

  highestBallot(state: Uint8Array): number {
    let highest = 0;
    for (const at of this.ballots) highest = Math.max(highest, state[at]!);
    return highest;
  }

  /** Makes room for a ballot in the order of ballots. */
  shift(state: Uint8Array, from: number): void {
    for (const at of this.ballots) if (state[at]! >= from) state[at]! += 1;
  }

  /** Only the order of ballots matters: numbers above `fixed` get no gaps. */
  renumber(state: Uint8Array, fixed: number): void {
    const { ranks } = this;
    ranks.fill(0);
    for (const at of this.ballots) ranks[state[at]!] = 1;
    let rank = fixed;
    for (let ballot = 1; ballot < RANKS; ballot += 1) {
      if (ballot <= fixed) ranks[ballot] = ballot;
      else if (ranks[ballot] !== 0) ranks[ballot] = rank += 1;
    }
    ranks[0] = 0;
    for (const at of this.ballots) state[at] = ranks[state[at]!]!;
  }

  /** Masters are alike: any order of them is the same state. */
  sort(state: Uint8Array): void {
    sortRecords(state, { width: this.masterWidth, count: this.masters });
  }
}
