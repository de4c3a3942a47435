import { describe, expect, it } from '@jest/globals';
import { type MasterStatus, quorumWithin, summarize, votingIn } from '../../../../lib/core/health/status.js';

const voting: MasterStatus = { master: 'v', state: 'voting' };
const down: MasterStatus = { master: 'd', state: 'down', reason: 'gone' };
const quarantined = (remaining: number): MasterStatus => ({ master: 'q', state: 'quarantined', remaining });

describe('The time until a quorum votes', () => {
  it.each<[string, MasterStatus[], number | undefined]>([
    ['is zero while a quorum votes', [voting, voting, down], 0],
    ['is the quarantine that completes the quorum', [quarantined(900), voting, quarantined(300)], 300],
    ['is the longer of two quarantines if both are needed', [quarantined(900), down, quarantined(300)], 900],
    ['is unknown if a master that is down is needed', [voting, down, down], undefined],
    ['is unknown if no master votes', [down], undefined],
  ])('%s', (_, masters, expected) => {
    expect(quorumWithin(summarize('web:1', masters))).toBe(expected);
  });
});

describe('The number of masters that vote', () => {
  it('counts neither quarantined masters nor those that are down', () => {
    expect(votingIn(summarize('web:1', [voting, quarantined(1), down, voting, voting]))).toBe(3);
  });
});
