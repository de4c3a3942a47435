import { describe, expect, it } from '@jest/globals';
import type { JobDeclaration } from '../../../lib/schedule/job-declaration.js';
import { resolveJob } from '../../../lib/schedule/job-settings.js';
import { memoryLockService } from '../../../lib/testing/memory-lock-service.js';

const where = '@LockedCron on Reports.run';
const locks = memoryLockService({ ttl: '20s' });

function every(schedule: string | number, options: object = {}): JobDeclaration {
  const kind = typeof schedule === 'string' && schedule.includes('*') ? 'cron' : 'interval';
  return { kind, where, property: 'run', schedule, options: { name: 'report', ...options } } as JobDeclaration;
}

describe('The settings of a job', () => {
  it('have defaults', () => {
    expect(resolveJob(every('0 3 * * *'), locks)).toMatchObject({
      ...{ name: 'report', resource: 'job:report', ttl: 20_000, maxHold: 86_400_000 },
      policy: { recover: true, catchUp: false, overlap: 'skip' },
    });
  });

  it.each([
    ['* * * * *', 20_000],
    ['*/30 * * * * *', 15_000],
    ['*/2 * * * * *', 1_000],
    ['* * * * * *', 1_000],
    ['30s', 15_000],
    [3_001, 1_500],
    ['1s', 1_000],
    ['5m', 20_000],
  ])('let a crashed instance block %s for %d ms', (schedule, ttl) => {
    expect(resolveJob(every(schedule), locks).ttl).toBe(ttl);
  });

  it.each([
    ['999ms', 'must be from 1000'],
    ['often', 'must be a whole number of milliseconds'],
  ])('have no period of %s', (period, message) => {
    expect(() => resolveJob(every(period), locks)).toThrow(message);
  });

  it('name the method in errors', () => {
    expect(() => resolveJob(every('5m', { recover: 'no' }), locks)).toThrow(`${where}: recover must be true or false`);
  });
});
