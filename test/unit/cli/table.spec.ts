import { describe, expect, it } from '@jest/globals';
import { duration, plain, table, wrap } from '../../../lib/cli/table.js';

describe('The output for people', () => {
  it.each<{ of: number | undefined; words: string }>([
    { of: undefined, words: '-' },
    { of: 0, words: '0.0 ms' },
    { of: 0.26, words: '0.3 ms' },
    { of: -12.4, words: '-12 ms' },
    { of: 999, words: '999 ms' },
    { of: 1_499, words: '1.5 s' },
    { of: 119_000, words: '119.0 s' },
    { of: 120_000, words: '2.0 min' },
    { of: 7_200_000, words: '2.0 h' },
    { of: -864_000_000, words: '-10.0 days' },
  ])('shows $of ms as $words', ({ of, words }) => {
    expect(duration(of)).toBe(words);
  });

  it('breaks lines between words, and within a word that is too long', () => {
    expect(wrap('its data is new to all processes', 14)).toBe('its data is\nnew to all\nprocesses');
    expect(wrap('a-very-long-name:4711', 8)).toBe('a-very-l\nong-name\n:4711');
    expect(wrap('', 8)).toBe('');
  });

  it.each([
    ['one long cell', ['a', 'x'.repeat(300)]],
    ['many cells', Array.from({ length: 5 }, (_, i) => `${i} ${'word '.repeat(20)}`)],
  ])('draws lines of at most 100 columns: %s', (_, row) => {
    const lines = table(
      row.map(() => 'head'),
      [row],
    ).split('\n');
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(100);
    expect(lines.join('').replaceAll(/[^x]/g, '')).toHaveLength(row.join('').replaceAll(/[^x]/g, '').length);
  });

  it('paints each line of a cell', () => {
    const drawn = table(['h'], [['y'.repeat(200)]], (line, { column }) => `<${column}>${line.slice(3)}`);
    expect(drawn.match(/<0>/g)).toHaveLength(3);
  });

  it('replaces the control characters of a server', () => {
    expect(plain('it was\x1b[2J new\n')).toBe('it was?[2J new?');
  });

  it('draws a table without colours', () => {
    const drawn = table(
      ['a', 'b'],
      [
        ['1', 'x'],
        ['2', 'y'],
      ],
    );
    expect(drawn.split('\n')).toEqual(['┌───┬───┐', '│ a │ b │', '├───┼───┤', '│ 1 │ x │', '│ 2 │ y │', '└───┴───┘']);
  });
});
