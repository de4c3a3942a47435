/**
 * What a step does, as a number. The model converts it to words for traces only, because traces are rare and steps are
 * not.
 */
export type Emit = (next: Uint8Array, action: number) => void;

/** A system of states and steps. A state is a fixed number of bytes, one for each field. */
export abstract class Model {
  abstract readonly width: number;
  abstract initial(): Uint8Array[];
  /** Emits every state that one step can lead to. The emitted buffer may be reused for the next state. */
  abstract successors(state: Uint8Array, emit: Emit): void;
  /** The property that this state breaks, in words; `undefined` if there is none. */
  abstract violation(state: Uint8Array): string | undefined;
  abstract describe(action: number): string;
  abstract show(state: Uint8Array): string;
}

/** One line of a counter-example: a step, and the state that it leads to. */
export interface Step {
  readonly action: string;
  readonly state: string;
}

export interface Verdict {
  readonly states: number;
  /** Steps from the first state to the last one. */
  readonly depth: number;
  /** Whether the search stopped at the bound on states and therefore proves nothing. */
  readonly bounded: boolean;
  /** The broken property and a shortest way to it; absent if every reachable state keeps all properties. */
  readonly violation?: { readonly property: string; readonly trace: readonly Step[] };
}

/** The search ends with so many states, and proves nothing then. */
const LIMIT = 4_000_000;

/** Visits every reachable state breadth first, so that the first violation has the fewest steps. */
export function explore(model: Model): Verdict {
  const states = new StateTable(model.width);
  const current = new Uint8Array(model.width);
  let from = -1;
  let broken: { index: number; property: string } | undefined;

  const visit = (next: Uint8Array): void => {
    if (!states.add(next, from)) return;
    const property = broken ? undefined : model.violation(next);
    if (property !== undefined) broken = { index: states.count - 1, property };
  };

  for (const state of model.initial()) visit(state);
  let depth = 0;
  let layerEnd = states.count;
  for (let index = 0; index < states.count && !broken && states.count < LIMIT; index += 1) {
    if (index === layerEnd) {
      depth += 1;
      layerEnd = states.count;
    }
    states.read(index, current);
    from = index;
    model.successors(current, visit);
  }
  const { count } = states;
  if (broken === undefined) return { states: count, depth, bounded: count >= LIMIT };
  const trace = retrace(model, states.path(broken.index));
  const violation = { property: broken.property, trace };
  return { states: count, depth: trace.length - 1, bounded: false, violation };
}

/** Actions are not stored with the states: each is found again among the steps of the state before it. */
function retrace(model: Model, path: readonly Uint8Array[]): Step[] {
  return path.map((state, at) => {
    const before = path[at - 1];
    if (before === undefined) return { action: 'start', state: model.show(state) };
    let action: number | undefined;
    model.successors(before, (next, candidate) => {
      if (next.every((byte, offset) => byte === state[offset])) action ??= candidate;
    });
    if (action === undefined) throw new Error(`no step leads from ${model.show(before)} to ${model.show(state)}`);
    return { action: model.describe(action), state: model.show(state) };
  });
}

/** A module-level binding: inside jest's sandbox, each access to a global costs more than the multiplication. */
const { imul } = Math;

const CHUNK_BITS = 15;
const CHUNK = 1 << CHUNK_BITS;

/** The states seen so far, each with its predecessor. Equality compares all bytes, not the hash. */
class StateTable {
  count = 0;
  private readonly bytes: Uint8Array[] = [];
  private readonly parents: Int32Array[] = [];
  private readonly hashes: Int32Array[] = [];
  /** Open addressing: a slot contains the index of a state plus one, or zero if it is empty. */
  private slots = new Int32Array(1 << 16);

  constructor(private readonly width: number) {}

  add(state: Uint8Array, parent: number): boolean {
    const hash = this.hash(state);
    const mask = this.slots.length - 1;
    let slot = hash & mask;
    for (let entry = this.slots[slot]!; entry !== 0; entry = this.slots[slot]!) {
      if (this.equals(entry - 1, hash, state)) return false;
      slot = (slot + 1) & mask;
    }
    const index = this.count;
    const chunk = index >>> CHUNK_BITS;
    if (chunk === this.bytes.length) this.addChunk();
    this.bytes[chunk]!.set(state, (index & (CHUNK - 1)) * this.width);
    this.parents[chunk]![index & (CHUNK - 1)] = parent;
    this.hashes[chunk]![index & (CHUNK - 1)] = hash;
    this.slots[slot] = index + 1;
    this.count = index + 1;
    if (this.count * 2 > this.slots.length) this.grow();
    return true;
  }

  read(index: number, into: Uint8Array): void {
    const at = (index & (CHUNK - 1)) * this.width;
    const bytes = this.bytes[index >>> CHUNK_BITS]!;
    for (let offset = 0; offset < this.width; offset += 1) into[offset] = bytes[at + offset]!;
  }

  /** The states from an initial one to this one. */
  path(index: number): Uint8Array[] {
    const path: Uint8Array[] = [];
    for (let at = index; at !== -1; at = this.parents[at >>> CHUNK_BITS]![at & (CHUNK - 1)]!) {
      const state = new Uint8Array(this.width);
      this.read(at, state);
      path.unshift(state);
    }
    return path;
  }

  private hash(state: Uint8Array): number {
    let hash = 0x811c9dc5 | 0;
    for (let offset = 0; offset < this.width; offset += 1) hash = imul(hash ^ state[offset]!, 0x01000193);
    hash ^= hash >>> 15;
    hash = imul(hash, 0x2c1b3c6d);
    return hash ^ (hash >>> 13);
  }

  private equals(index: number, hash: number, state: Uint8Array): boolean {
    const chunk = index >>> CHUNK_BITS;
    if (this.hashes[chunk]![index & (CHUNK - 1)] !== hash) return false;
    const bytes = this.bytes[chunk]!;
    const at = (index & (CHUNK - 1)) * this.width;
    for (let offset = 0; offset < this.width; offset += 1) {
      if (bytes[at + offset] !== state[offset]) return false;
    }
    return true;
  }

  private addChunk(): void {
    this.bytes.push(new Uint8Array(CHUNK * this.width));
    this.parents.push(new Int32Array(CHUNK));
    this.hashes.push(new Int32Array(CHUNK));
  }

  private grow(): void {
    const slots = new Int32Array(this.slots.length * 2);
    const mask = slots.length - 1;
    for (let index = 0; index < this.count; index += 1) {
      let slot = this.hashes[index >>> CHUNK_BITS]![index & (CHUNK - 1)]! & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = index + 1;
    }
    this.slots = slots;
  }
}
