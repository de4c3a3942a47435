// Where the model of wake-ups keeps what, and the canonical form of its states.

const PHASE = 0;
/** The order of arrival, from one; 0 for a process that does not wait. */
const AGE = 1;
const FLAGS = 2;
const PROCESS = 3;

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

  /** Makes a process the youngest. */
  join(next: Uint8Array, p: number): void {
    let youngest = 0;
    for (let other = 0; other < this.processes; other += 1) youngest = Math.max(youngest, next[this.age(other)]!);
    next[this.age(p)] = youngest + 1;
  }

  /** Gives a process this phase. It does not wait any more. */
  set(next: Uint8Array, p: number, phase: number): void {
    next[this.phase(p)] = phase;
    next[this.age(p)] = 0;
    next[this.flags(p)] = 0;
  }

  /** Only the order of ages matters. */
  renumber(next: Uint8Array): void {
    for (let rank = 1, from = 0; ; rank += 1) {
      let lowest = 0;
      for (let p = 0; p < this.processes; p += 1) {
        const age = next[this.age(p)]!;
        if (age > from && (lowest === 0 || age < lowest)) lowest = age;
      }
      if (lowest === 0) return;
      for (let p = 0; p < this.processes; p += 1) if (next[this.age(p)] === lowest) next[this.age(p)] = rank;
      from = rank;
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
