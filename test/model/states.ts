import { Model } from './checker.js';

// What the models share. A state is an array of small numbers.

/** A model with rules that can be left out, and one buffer in which all steps are made. */
export abstract class StateModel<Options extends { readonly without?: readonly string[] }> extends Model {
  protected readonly weak: ReadonlySet<string>;
  protected readonly copy: (state: Uint8Array) => Uint8Array;

  protected constructor(
    protected readonly options: Options,
    readonly width: number,
  ) {
    super();
    this.weak = new Set(options.without);
    const next = new Uint8Array(width);
    this.copy = (state) => {
      next.set(state);
      return next;
    };
  }
}

const MASTER_NAMES = ['m1', 'm2', 'm3', 'm4', 'm5'];

/**
 * Steps as numbers, and what each is in words: who takes the step, where, and a detail. A number has four bits for each of
 * these.
 */
export function stepsOf<Step extends string>(
  words: Readonly<Record<Step, (who: string, where: string, detail: number) => string>>,
) {
  const steps = Object.keys(words) as Step[];
  const codes = Object.fromEntries(steps.map((step, index) => [step, index << 12])) as Record<Step, number>;
  return {
    action: (step: Step, who = 0, where = 0, detail = 0): number => codes[step] | (detail << 8) | (who << 4) | where,
    describe: (action: number, who: ArrayLike<string>, where: ArrayLike<string> = MASTER_NAMES): string =>
      words[steps[action >> 12]!](who[(action >> 4) & 15] ?? '', where[action & 15] ?? '', (action >> 8) & 15),
  };
}

/** The masters of which something is true, in words. */
export function mastersWhere(masters: number, isTrue: (m: number) => boolean): string {
  return `[${MASTER_NAMES.filter((_, m) => m < masters && isTrue(m)).join(' ')}]`;
}

/** Where the fields of a state are: for each group its records, all with the same fields, one byte each. */
export function layoutOf<Many extends string, One extends string>(
  groups: readonly (readonly [count: number, fields: readonly Many[]])[],
  single: readonly One[],
) {
  let width = 0;
  const many: Partial<Record<Many, (index: number) => number>> = {};
  for (const [count, fields] of groups) {
    const start = width;
    for (const [offset, field] of fields.entries()) many[field] = (index) => start + index * fields.length + offset;
    width += count * fields.length;
  }
  const one = Object.fromEntries(single.map((field) => [field, width++]));
  return { ...(many as Record<Many, (index: number) => number>), ...(one as Record<One, number>), width };
}

export function swap(state: Uint8Array, left: number, right: number, width: number): void {
  for (let offset = 0; offset < width; offset += 1) {
    const byte = state[left + offset]!;
    state[left + offset] = state[right + offset]!;
    state[right + offset] = byte;
  }
}

/** Puts neighbouring records in order, where they are alike: any order of these is the same state. */
export function sortRecords(
  state: Uint8Array,
  { width, count, areAlike }: { width: number; count: number; areAlike?: readonly boolean[] },
): void {
  for (let end = count - 1; end > 0; end -= 1) {
    for (let left = 0; left < end * width; left += width) {
      if (areAlike && !areAlike[left / width]) continue;
      let offset = 0;
      while (offset < width && state[left + offset] === state[left + width + offset]) offset += 1;
      if (offset < width && state[left + offset]! > state[left + width + offset]!)
        swap(state, left, left + width, width);
    }
  }
}

/** One tick less, down to zero. Returns the new value. */
export function decrement(state: Uint8Array, at: number): number {
  const value = state[at]!;
  if (value === 0) return 0;
  state[at] = value - 1;
  return value - 1;
}

export function bitCount(mask: number): number {
  let bits = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) bits += 1;
  return bits;
}
