import { describe, expect, it } from '@jest/globals';
import { compareVersions, type Version } from '../../../../lib/core/state/ballot.js';
import { entryFrom, entryText, type StateEntry } from '../../../../lib/core/state/state-entry.js';

const promised = { number: 1_735_689_600_000_000, id: 'b-_' };
const version = { number: 1_735_689_599_000_000, id: 'a', sequence: 2 };
const times = { at: 1_735_689_600_000, life: 2_592_000_000 };

// Processes of different versions, and other implementations, read and write the same entries. Protocol 10.1.
describe('The entry of a state', () => {
  it.each<[string, string, StateEntry]>([
    ['a promise', '1735689600000000 b-_', { promised, stored: undefined }],
    [
      'a value, whose JSON may have lines',
      '1735689600000000 b-_ 1735689599000000 a 2 1735689600000 2592000000 g@5\n"1\n2"',
      { promised, stored: { version, ...times, generation: 'g@5', json: '"1\n2"' } },
    ],
    [
      'no value, in data without a generation',
      '1735689600000000 b-_ 1735689599000000 a 2 1735689600000 2592000000 \n',
      { promised, stored: { version, ...times, generation: '', json: '' } },
    ],
  ])('with %s is a text of fixed form', (_, text, entry) => {
    expect(entryText(entry)).toBe(text);
    expect(entryFrom(text)).toEqual(entry);
  });

  it('has a version that is compared by its number, then by its id, then by the number of the write', () => {
    const ascending: Version[] = [
      { number: 1, id: 'b', sequence: 9 },
      { number: 2, id: 'a', sequence: 5 },
      { number: 2, id: 'a', sequence: 6 },
      { number: 2, id: 'b', sequence: 0 },
      { number: 10, id: 'a', sequence: 0 },
    ];
    expect([...ascending].reverse().sort(compareVersions)).toEqual(ascending);
  });
});
