import { describe, expect, it } from '@jest/globals';
import { partitionOf, slotOf, TAGS } from '../../../../lib/redis/cluster/slots.js';

// Processes of different versions agree on the slot of a key and on the tag of its partition.
describe('The slot of a key', () => {
  it.each([
    ['', 0],
    ['123456789', 12_739],
    ['foo', 12_182],
    ['hello', 866],
    ['ÿ', 5_427],
    ['€uro', 997],
  ])('%j is that of CRC-16/XMODEM: %i', (key, slot) => {
    expect(slotOf(key)).toBe(slot);
  });

  it.each([
    ['{hello}', 'hello'],
    ['a{hello}b', 'hello'],
    ['{a}{b}', 'a'],
    ['{a}b}', 'a'],
    ['}{a}', 'a'],
    ['{{a}}', '{a'],
    ['x{€}y', '€'],
    ['é{foo}', 'foo'],
  ])('%j is that of its hash tag %j', (key, tag) => {
    expect(slotOf(key)).toBe(slotOf(tag));
  });

  // With another name around it, a hash tag would make no difference.
  it.each(['{}', '{}}', 'a{}{b}', '{', '}', 'a{b', 'a}b{c'])('%j is that of the whole key', (key) => {
    expect(slotOf(key)).not.toBe(slotOf(`x${key}`));
  });
});

// Protocol 12.1
describe('The partition of a resource', () => {
  it('has 64 slots', () => {
    for (const resource of ['', 'a', 'hello', '{hello}', 'order:1', 'order:2', '€']) {
      const first = 64 * partitionOf(resource);
      expect(slotOf(resource)).toBeGreaterThanOrEqual(first);
      expect(slotOf(resource)).toBeLessThan(first + 64);
    }
  });
});

// Protocol 12.1
describe('The tag of a partition', () => {
  it('has the first slot of its partition, as a hash tag, too', () => {
    const slots = Array.from({ length: 256 }, (_, partition) => 64 * partition);
    expect(TAGS.map(slotOf)).toEqual(slots);
    expect(TAGS.map((tag) => slotOf(`locks:{${tag}}a{b}`))).toEqual(slots);
    expect(TAGS.map(partitionOf)).toEqual(Array.from(slots.keys()));
  });

  it('is the first of the shortest strings with its slot', () => {
    const found = new Map<number, string>();
    for (const text of stringsOf('0123456789abcdefghijklmnopqrstuvwxyz', 4)) {
      const slot = slotOf(text);
      if (slot % 64 === 0 && !found.has(slot)) found.set(slot, text);
      if (found.size === TAGS.length) break;
    }
    expect(TAGS).toEqual(TAGS.map((_, partition) => found.get(64 * partition)));
  });
});

/** All strings of these characters, the shorter ones first. */
function* stringsOf(characters: string, longest: number): Generator<string> {
  let shorter = [''];
  for (let length = 1; length <= longest; length++) {
    const strings: string[] = [];
    for (const start of shorter) {
      for (const character of characters) {
        const text = start + character;
        yield text;
        if (length < longest) strings.push(text);
      }
    }
    shorter = strings;
  }
}
