import { describe, expect, it } from '@jest/globals';
import { judge } from '../../torture/fenced/verdict.mjs';

/** Commits in order, each with its token and what it had read. */
function verdictOf(count: number, ...commits: readonly (readonly [token: number, base: number])[]): object {
  const ledger = commits.map(([token, base], index) => ({ item: 'a', version: index + 1, token: String(token), base }));
  return judge([{ item: 'a', count: String(count) }], [...ledger].reverse(), {});
}

describe('The verdict about fenced transactions', () => {
  it('accepts commits in the order of their tokens, each of which read the one before', () => {
    expect(verdictOf(3, [41, 0], [41, 1], [57, 2])).toEqual({ commits: 3, late: 0, lost: 0, beside: 0 });
  });

  it('notices a commit of an earlier holder after that of a later one', () => {
    expect(verdictOf(2, [57, 0], [41, 1])).toMatchObject({ late: 1, lost: 0 });
  });

  it('notices an update that another one undid', () => {
    expect(verdictOf(1, [41, 0], [57, 0])).toMatchObject({ late: 0, lost: 1 });
  });

  it('notices a write that left nothing in the ledger', () => {
    expect(verdictOf(5, [41, 0])).toMatchObject({ lost: 1 });
  });
});
