import { describe, expect, it } from '@jest/globals';
import { QuorumWatch } from '../../../../lib/core/health/quorum-watch.js';
import { type MasterState, type RedlockStatus, summarize } from '../../../../lib/core/health/status.js';

function watching(...states: MasterState[]) {
  const seen: unknown[] = [];
  let present = statusWith(states);
  const watch = new QuorumWatch(() => present, {
    firstStatus: ({ canVote }) => seen.push(['first', canVote]),
    quorumLost: (voting, masters, status) => seen.push(['lost', voting, masters, status]),
    quorumRestored: (voting, masters, status) => seen.push(['restored', voting, masters, status]),
  });
  return { watch, seen, turnTo: (...next: MasterState[]) => (present = statusWith(next)) };
}

function statusWith(states: readonly MasterState[]): RedlockStatus {
  return summarize(
    'web:1',
    states.map((state, index) => ({ master: `m${index + 1}`, state })),
  );
}

describe('QuorumWatch', () => {
  it('reports nothing before the first status, and that only once', () => {
    const { watch, seen, turnTo } = watching('down', 'down', 'down');
    watch.masterLost();
    turnTo('voting', 'voting', 'voting');
    watch.masterFound();
    expect(seen).toEqual([]);
    watch.begin();
    watch.begin();
    expect(seen).toEqual([['first', true]]);
  });

  it('reports a lost quorum and its return once each, with the status', () => {
    const { watch, seen, turnTo } = watching('voting', 'voting', 'down');
    watch.begin();
    watch.masterLost();
    const lost = turnTo('voting', 'silent', 'down');
    watch.masterSilent();
    watch.masterLost();
    const restored = turnTo('voting', 'voting', 'down');
    watch.masterAnswersAgain();
    watch.check();
    expect(seen.slice(1)).toEqual([
      ['lost', 1, 3, lost],
      ['restored', 2, 3, restored],
    ]);
  });

  it('reports a quorum that votes after a first status without one', () => {
    const { watch, seen, turnTo } = watching('quarantined', 'quarantined', 'quarantined');
    watch.begin();
    turnTo('voting', 'voting', 'quarantined');
    watch.masterVotesAgain();
    expect(seen).toEqual([
      ['first', false],
      ['restored', 2, 3, expect.objectContaining({ canVote: true })],
    ]);
  });
});
