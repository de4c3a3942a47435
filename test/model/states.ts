// What the models share about states, which are arrays of small numbers.

/** One tick less, down to zero. Returns the new value. */
export function decrement(state: Uint8Array, at: number): number {
  const value = state[at]!;
  if (value === 0) return 0;
  state[at] = value - 1;
  return value - 1;
}

/** Number of bits that are set. */
export function bitCount(mask: number): number {
  let bits = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) bits += 1;
  return bits;
}
