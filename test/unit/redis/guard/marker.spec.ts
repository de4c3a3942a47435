import { describe, expect, it } from '@jest/globals';
import { markArguments, MARKER_FIELDS, markerFrom } from '../../../../lib/redis/guard/marker.js';

const values = MARKER_FIELDS.map((field) => `a ${field}`);
const server = { run: 'run', replid: 'history', time: 5, marker: markerFrom(values, 0) };
const blank = (...names: string[]): string =>
  MARKER_FIELDS.map((field, index) => (names.includes(field) ? '' : values[index])).join('\n');

describe('markerFrom', () => {
  it('finds no marker where there is no nonce', () => {
    expect(markerFrom([], 0)).toBeUndefined();
    expect(markerFrom(['run', 'history', '', '5'], 0)).toBeUndefined();
  });

  it('takes an absent field for an empty one', () => {
    expect(markerFrom(['', '', 'nonce'], 0)).toMatchObject({
      ...{ run: '', replid: '', nonce: 'nonce', isVetoed: false, isGuess: false, maxTtl: 0, storedTtl: 0 },
      ...{ writtenBy: '' },
    });
  });
});

describe('markArguments', () => {
  it('does not compare announcements, which change all the time, for a change that leaves them as they are', () => {
    expect(markArguments(server, { vetoed: 1 })).toEqual(['run', 'history', 5, 0, blank('ttls', 'known'), 'vetoed', 1]);
  });

  it('compares announcements for a change that replaces them', () => {
    expect(markArguments(server, { ttls: '', from: 9 })).toEqual([
      'run',
      'history',
      5,
      1,
      blank(),
      'ttls',
      '',
      'from',
      9,
    ]);
  });

  it('expects no marker where there was none, and any time where the reading has none', () => {
    const args = markArguments({ ...server, time: undefined, marker: undefined }, { from: 9 });
    expect(args.slice(2)).toEqual(['', 1, '\n'.repeat(MARKER_FIELDS.length - 1), 'from', 9]);
  });
});
