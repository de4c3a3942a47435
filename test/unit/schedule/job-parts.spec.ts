import { describe, expect, it } from '@jest/globals';
import { attemptJob } from '../../../lib/schedule/job-execution.js';
import { type JobDeclaration, resolveJob } from '../../../lib/schedule/locked-job.decorators.js';
import { JobHandedOnError } from '../../../lib/schedule/job-locks.js';
import { logJobsTo } from '../../../lib/schedule/jobs.js';
import { memoryLockService } from '../../../lib/testing/redlock-testing.module.js';

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
  ])('let a crashed instance block %s for %d ms', (schedule, ttl) =>
    expect(resolveJob(every(schedule), locks).ttl).toBe(ttl),
  );

  it.each([
    ['999ms', 'must be from 1000'],
    ['often', 'must be a whole number of milliseconds'],
  ])('have no period of %s', (period, message) => expect(() => resolveJob(every(period), locks)).toThrow(message));
});

const failureOf = (thrown: unknown) =>
  attemptJob('@LockedCron on Jobs.run', () => {
    throw thrown;
  });

class Unreadable extends Error {
  override get message(): string {
    throw new TypeError('from inside');
  }
}

it.each<[string, unknown, string]>([
  ['an error', new Error('out of paper'), 'out of paper'],
  ['an error whose message is a list', Object.assign(new Error(), { message: ['a', 'b'] }), '["a","b"]'],
  ['nothing', undefined, 'undefined'],
  ['an error whose message cannot be read', new Unreadable(), 'an error without a readable message'],
])('An attempt at a job has a message as its failure, if the method throws %s', async (_, thrown, message) => {
  const failure = await failureOf(thrown);
  expect(failure?.error === thrown).toBe(true);
  expect(failure?.message).toBe(message);
});

/** An observer, and the lines that it writes. */
function logged() {
  const lines: string[] = [];
  const note =
    (level: string) =>
    (message: string): void =>
      void lines.push(`${level} ${message}`);
  const logger = { log: note('log'), warn: note('warn'), error: note('error'), debug: note('debug') };
  return { lines, observer: logJobsTo(logger) };
}

const scheduledFor = new Date(0);

describe('The log of jobs', () => {
  it.each<[string, boolean, Error, string]>([
    [
      'handed on',
      false,
      new JobHandedOnError(),
      'log job report of 1970-01-01T00:00:00.000Z is handed on by the shutdown',
    ],
    ['ended for another reason', false, new Error('lost'), 'has ended here without a record, so that it runs again'],
    [
      'running without its lock',
      true,
      new Error('lost'),
      'this instance runs no tick of the job until the method returns',
    ],
  ])('says what follows from a run without a record that is %s', (_, isRunning, cause, line) => {
    const { lines, observer } = logged();
    observer.unfinished?.('report', { scheduledFor, attempt: 1, isRunning }, cause);
    expect(lines).toEqual([expect.stringContaining(line)]);
    expect(lines[0]).toMatch(/ so that it runs again unless `recover` is false/);
  });

  it('warns of a second attempt only', () => {
    const { lines, observer } = logged();
    for (const attempt of [1, 2]) observer.started?.('report', { scheduledFor, startedAt: scheduledFor, attempt });
    expect(lines.map((line) => line.split(' ')[0])).toEqual(['debug', 'warn']);
    expect(lines[1]).toContain('attempt 2: no end of the earlier one was recorded');
  });
});
