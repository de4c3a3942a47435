import { describe, expect, it } from '@jest/globals';
import type { MasterStatus } from '../../../lib/core/health/status.js';
import { summarize } from '../../../lib/core/health/status.js';
import { availabilityOf } from '../../../lib/dashboard/availability.js';

const voting = (master: string): MasterStatus => ({ master, state: 'voting' });
const quarantined = (master: string, remaining: number): MasterStatus => {
  return { master, state: 'quarantined', reason: 'it was restarted', remaining };
};
const down = (master: string): MasterStatus => ({ master, state: 'down', reason: 'connect ECONNREFUSED' });

describe('availabilityOf', () => {
  it('says that all masters vote', () => {
    expect(availabilityOf(summarize('web:1', [voting('a')]))).toEqual({ reason: '1 of 1 master votes.' });
    expect(availabilityOf(summarize('web:1', [voting('a'), voting('b'), voting('c')]))).toEqual({
      reason: '3 of 3 masters vote.',
    });
  });

  it('warns when no other master may fail', () => {
    expect(availabilityOf(summarize('web:1', [voting('a'), voting('b'), down('c')]))).toEqual({
      reason: '2 of 3 masters vote. No other master may fail. c is down: connect ECONNREFUSED.',
    });
    const four = ['a', 'b', 'c', 'd'].map(voting);
    expect(availabilityOf(summarize('web:1', [...four, down('e')])).reason).toBe(
      '4 of 5 masters vote. e is down: connect ECONNREFUSED.',
    );
  });

  it('knows when enough quarantines have ended', () => {
    const masters = [quarantined('a', 9_000), quarantined('b', 3_000), quarantined('c', 5_000)];
    expect(availabilityOf(summarize('web:1', masters))).toMatchObject({ opensIn: 5_000 });
    expect(availabilityOf(summarize('web:1', [voting('a'), ...masters.slice(1)]))).toMatchObject({ opensIn: 3_000 });
  });

  it('knows no time if quarantined masters are not enough', () => {
    const availability = availabilityOf(summarize('web:1', [down('a'), down('b'), quarantined('c', 5_000)]));
    expect(availability).not.toHaveProperty('opensIn');
    expect(availability.reason).toMatch(/^0 of 3 masters vote, 2 are needed. a is down: .* c is quarantined: it was/);
  });
});
