import { describe, expect, it } from '@jest/globals';
import { QuorumUnavailableError } from '../../../lib/redlock/errors.js';
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
  it.each<[string, JobDeclaration, string]>([
    ['class, method and expression', every('0 3 * * *'), `${where}('0 3 * * *')`],
    ['time zone', every('0 3 * * *', { timeZone: 'UTC' }), `${where}('0 3 * * *', UTC)`],
    ['period', every('5m'), `${where}('5m')`],
  ])('have a text for the record with %s', (_, declaration, text) =>
    expect(resolveJob(declaration, locks).declared).toBe(text),
  );

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

  it('name the method in errors', () =>
    expect(() => resolveJob(every('5m', { recover: 'no' }), locks)).toThrow(`${where}: recover must be true or false`));
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
  ['several errors without a message of their own', new AggregateError([new Error('a')]), 'AggregateError'],
  ['a string', 'out of paper', 'out of paper'],
  ['nothing', undefined, 'undefined'],
  ['an object without a prototype', Object.create(null), '{}'],
  ['an error whose message cannot be read', new Unreadable(), 'an error without a readable message'],
  ['a bigint', 1n, 'an error without a readable message'],
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
  it('names both methods where two applications share a job', () => {
    const { lines, observer } = logged();
    const [here, there] = ["@LockedCron on A.run('* * * * *')", "@LockedInterval on B.run('1h')"];
    observer.conflicting?.('report', { here, there, instance: 'b-1', keyPrefix: 'lock:' });
    expect(lines).toEqual([
      `warn job report is ${here} here, and ${there} on instance b-1: two applications take each other's ticks. Give each ` +
        "application a `keyPrefix` of its own (it is 'lock:'), or each job a name. If one has replaced the other, this ends " +
        'with the deployment',
    ]);
  });

  it.each([
    [
      'handed on',
      ...[false, new JobHandedOnError()],
      'log job report of 1970-01-01T00:00:00.000Z is handed on by the shutdown, so that it runs again unless `recover` is false',
    ],
    [
      'ended for another reason',
      ...[false, new Error('lost')],
      'warn job report of 1970-01-01T00:00:00.000Z has ended here without a record, so that it runs again unless `recover` is false: lost',
    ],
    [
      'running without its lock',
      ...[true, new Error('lost')],
      'warn job report of 1970-01-01T00:00:00.000Z has lost its lock, so that it runs again unless `recover` is false; ' +
        'this instance runs no tick of the job until the method returns: lost',
    ],
  ] as [string, boolean, Error, string][])('says what follows from a run without a record that is %s', (...row) => {
    const [, isRunning, cause, line] = row;
    const { lines, observer } = logged();
    observer.unfinished?.('report', { scheduledFor, attempt: 1, isRunning }, cause);
    expect(lines).toEqual([line]);
  });

  it('warns of a second attempt only', () => {
    const { lines, observer } = logged();
    for (const attempt of [1, 2]) observer.started?.('report', { scheduledFor, startedAt: scheduledFor, attempt });
    expect(lines.map((line) => line.split(' ')[0])).toEqual(['debug', 'warn']);
    expect(lines[1]).toContain('attempt 2: no end of the earlier one was recorded');
  });

  it('writes the same delay once, until the job starts', () => {
    const { lines, observer } = logged();
    const cause = new QuorumUnavailableError('lock "a"', ['a'], [], 2, 3);
    observer.delayed?.('report', cause);
    observer.delayed?.('report', cause);
    observer.started?.('report', { scheduledFor, startedAt: scheduledFor, attempt: 1 });
    observer.delayed?.('report', cause);
    expect(lines.filter((line) => line.startsWith('warn'))).toHaveLength(2);
  });
});
