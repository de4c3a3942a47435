/** Maps strings to 32-bit numbers, in every process in the same way. FNV-1a. Protocol 5.3. */
export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}

/** Mixes a 32-bit number, so that each input bit changes half of the output bits. The finalizer of MurmurHash3. */
export function mix(number: number): number {
  let value = Math.imul(number ^ (number >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
