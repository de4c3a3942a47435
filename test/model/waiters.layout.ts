// Where the model of wake-ups keeps what, and the canonical form of its states.
import { bitCount } from './states.js';

const PHASE = 0;
/** The order of arrival, from one; 0 for a process that does not wait. */
const AGE = 1;
const FLAGS = 2;
/** Its age in the queue, and at the barrier; 0 if it is not there. */
const SCORE = 3;
const STANDS = 4;
const PROCESS = 5;
const AGES = [AGE, SCORE, STANDS];

/** Offsets of the fields of a state: processes, and the broken property. */
export class WaitersLayout {
  readonly broken: number;
  readonly width: number;
  private readonly processes: number;

  constructor(private readonly modes: readonly string[]) {
    this.processes = modes.length;
    this.broken = this.processes * PROCESS;
    this.width = this.broken + 1;
  }

  phase(p: number): number {
    return p * PROCESS + PHASE;
  }

  age(p: number): number {
    return p * PROCESS + AGE;
  }

  flags(p: number): number {
    return p * PROCESS + FLAGS;
  }

  /** Its age in the queue. */
  score(p: number): number {
    return p * PROCESS + SCORE;
  }

  /** Its age at the barrier. */
  stands(p: number): number {
    return p * PROCESS + STANDS;
  }

  /** Makes a process the youngest. */
  join(next: Uint8Array, p: number): void {
    next[this.age(p)] = 32 - Math.clz32(this.ages(next) | 1);
  }

  /** All ages from this one on. */
  agesFrom(state: Uint8Array, first: number): readonly number[] {
    const ages: number[] = [];
    for (let left = this.ages(state) >> first, age = first; left > 0; left >>= 1, age += 1)
      if (left & 1) ages.push(age);
    return ages;
  }

  /** The ages that occur, as bits. */
  private ages(state: Uint8Array): number {
    let ages = 0;
    for (let p = 0; p < this.processes; p += 1) for (const field of AGES) ages |= 1 << state[p * PROCESS + field]!;
    return ages;
  }

  /** Gives a process this phase. It does not wait any more. */
  set(next: Uint8Array, p: number, phase: number): void {
    next[this.phase(p)] = phase;
    next[this.age(p)] = 0;
    next[this.flags(p)] = 0;
    next[this.score(p)] = 0;
    next[this.stands(p)] = 0;
  }

  /** Only the order of ages matters. */
  renumber(next: Uint8Array): void {
    const ages = this.ages(next) | 1;
    for (let p = 0; p < this.processes; p += 1) {
      for (const field of AGES) {
        const at = p * PROCESS + field;
        next[at] = bitCount(ages & ((1 << next[at]!) - 1));
      }
    }
  }

  /** Processes of one mode are alike: any order of them is the same state. */
  sort(next: Uint8Array): void {
    for (let end = this.processes - 1; end > 0; end -= 1) {
      for (let p = 0; p < end; p += 1) if (this.modes[p] === this.modes[p + 1]) this.order(next, p * PROCESS);
    }
  }

  private order(next: Uint8Array, left: number): void {
    let offset = 0;
    while (offset < PROCESS && next[left + offset] === next[left + PROCESS + offset]) offset += 1;
    if (offset === PROCESS || next[left + offset]! < next[left + PROCESS + offset]!) return;
    for (let at = left; at < left + PROCESS; at += 1) {
      const byte = next[at]!;
      next[at] = next[at + PROCESS]!;
      next[at + PROCESS] = byte;
    }
  }
}
