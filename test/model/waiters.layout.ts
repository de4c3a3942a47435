// Where the model of wake-ups keeps what, and the canonical form of its states.
import { bitCount, sortRecords } from './states.js';

/** Fields of a process; all but the first and the third are ages. */
const PROCESS = 5;
const AGES = [1, 3, 4];

export const phase = (p: number): number => p * PROCESS;
/** The order of arrival, from one; 0 for a process that does not wait. */
export const age = (p: number): number => p * PROCESS + 1;
export const flags = (p: number): number => p * PROCESS + 2;
/** Its age in the queue, and in the writer key; 0 if it is not there. */
export const score = (p: number): number => p * PROCESS + 3;
export const stands = (p: number): number => p * PROCESS + 4;

/** Offsets of the fields of a state: processes, and the broken property. */
export class WaitersLayout {
  readonly broken: number;
  readonly width: number;
  private readonly processes: number;
  private readonly areAlike: readonly boolean[];

  constructor(modes: readonly string[]) {
    this.processes = modes.length;
    this.areAlike = modes.map((mode, p) => mode === modes[p + 1]);
    this.broken = this.processes * PROCESS;
    this.width = this.broken + 1;
  }

  /** Makes a process the youngest. */
  join(next: Uint8Array, p: number): void {
    next[age(p)] = 32 - Math.clz32(this.ages(next) | 1);
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
  set(next: Uint8Array, p: number, value: number): void {
    next[phase(p)] = value;
    for (let field = 1; field < PROCESS; field += 1) next[p * PROCESS + field] = 0;
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
    sortRecords(next, { width: PROCESS, count: this.processes, areAlike: this.areAlike });
  }
}
