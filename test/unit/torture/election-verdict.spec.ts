import { describe, expect, it } from '@jest/globals';
import { type ElectionLine, judge } from '../../torture/leader/verdict.mjs';

const event = (
  instance: string,
  term: number,
  what: 'elected' | 'resigned' | 'lost' | 'changed',
  at: number,
): ElectionLine => ({
  ...{ instance, term, event: what, at },
});
const leads = (instance: string, term: number, before: number): ElectionLine => ({
  ...{ instance, term, event: 'leads', before, after: before + 1 },
});

/** Two leaders, one after the other. */
const lines = [
  ...[event('a', 1, 'elected', 10), leads('a', 1, 11), leads('a', 1, 50), event('a', 1, 'resigned', 60)],
  ...[event('c', 1, 'changed', 40), event('b', 2, 'elected', 70), leads('b', 2, 71), leads('b', 2, 90)],
  event('c', 2, 'changed', 95),
];

describe('The verdict on elections', () => {
  it('finds nothing in leaders that follow each other, and measures the time between them', () => {
    const { counts, problems, afterKill, afterResignation } = judge({ lines, kills: [{ instance: 'a', at: 55 }] });
    expect(problems).toEqual([]);
    expect(counts).toEqual({ elections: 2, overlaps: 0, smaller: 0, outOfOrder: 0 });
    expect([afterKill, afterResignation]).toEqual([[15], [10]]);
  });

  it.each<[string, ElectionLine, string]>([
    ['two leaders at a time', leads('a', 1, 80), 'two leaders'],
    ['a term that is not larger', event('c', 2, 'elected', 100), 'is not larger'],
    ['an election without an end before it', event('b', 3, 'elected', 100), 'events of b are out of order'],
    ['an end without an election', event('c', 2, 'lost', 100), 'events of c are out of order'],
    ['the end of another term', event('b', 1, 'lost', 100), 'events of b are out of order'],
    ['a follower that goes back', event('c', 1, 'changed', 100), 'events of c are out of order'],
  ])('notices %s', (_, line, problem) => {
    const { problems } = judge({ lines: [...lines, line], kills: [] });
    expect(problems).toEqual(expect.arrayContaining([expect.stringContaining(problem)]));
  });
});
