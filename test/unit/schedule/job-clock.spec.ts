import { describe, expect, it } from '@jest/globals';
import { ManualClock } from '../../../lib/memory/manual-clock.js';
import { JobClock } from '../../../lib/schedule/job-clock.js';

const HOUR = 3_600_000;

/** The clock of jobs, and what brings the answers of masters whose clocks are ahead by so much. */
function setUp() {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const jobs = new JobClock(clock);
  const answer = (clocks: Readonly<Record<string, number>>): void => {
    const at = clock.read();
    jobs.synchronize(Object.entries(clocks).map(([master, ahead]) => ({ master, time: at.wall + ahead, at })));
  };
  return { clock, jobs, answer, ahead: () => jobs.masters - clock.read().wall };
}

// Protocol 14.2
describe('The time of the masters', () => {
  it('is that of the process until a master has answered', () => {
    expect(setUp().ahead()).toBe(0);
  });

  it.each([-HOUR, HOUR])(
    'is not that of one whose clock differs by %d ms, while another one is down',
    async (wrong) => {
      const { clock, answer, ahead } = setUp();
      answer({ a: wrong, b: 50, c: 100 });
      expect(ahead()).toBe(wrong < 0 ? 50 : 100);
      await clock.advance(HOUR);
      answer({ a: wrong, b: 50 });
      expect(ahead()).toBe(wrong < 0 ? 50 : 100);
    },
  );

  it.each([
    [-HOUR, 0],
    [HOUR, 0],
    [-HOUR, 20],
  ])('is decided by the process if only two were ever heard, ahead by %d and %d ms', (wrong, right) => {
    const { answer, ahead } = setUp();
    answer({ a: wrong, b: right });
    expect(ahead()).toBe(0);
  });

  it('is that of the masters if both of two disagree with the process', () => {
    const { answer, ahead } = setUp();
    answer({ a: -HOUR, b: -HOUR - 100 });
    expect(ahead()).toBe(-HOUR);
    answer({ a: HOUR, b: HOUR + 100 });
    expect(ahead()).toBe(HOUR);
  });

  it('is what a master shows that was set right', () => {
    const { answer, jobs, ahead } = setUp();
    answer({ a: -HOUR, b: -HOUR, c: 0 });
    expect(ahead()).toBe(-HOUR);
    answer({ a: 0, b: -HOUR });
    expect(ahead()).toBe(0);
    expect(jobs.deviations).toEqual([{ master: 'b', ahead: -HOUR }]);
  });

  it('names the masters that are far from it', () => {
    const { answer, jobs } = setUp();
    answer({ a: 0, b: 1_000, c: -1_000 });
    expect(jobs.deviations).toEqual([]);
    answer({ c: 2 * HOUR });
    expect(jobs.deviations).toEqual([{ master: 'c', ahead: 2 * HOUR - 1_000 }]);
  });
});
