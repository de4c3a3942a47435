import { describe, expect, it } from '@jest/globals';
import { hash, mix } from '../../../lib/core/hash.js';

// Processes of different versions agree on the home master of a key and on the counters of its tokens.
// Protocol 5.3 and 9.1
describe('A hash', () => {
  it.each([
    ['', 0x811c9dc5],
    ['a', 0xe40c292c],
    ['foobar', 0xbf9cf968],
  ])('of %j is that of FNV-1a', (text, expected) => {
    expect(hash(text)).toBe(expected);
  });

  it.each([
    [0, 0],
    [1, 0x514e28b7],
    [2, 0x30f4c306],
    [0xffffffff, 0x81f16f39],
  ])('of %i is mixed as MurmurHash3 does', (number, expected) => {
    expect(mix(number)).toBe(expected);
  });
});
