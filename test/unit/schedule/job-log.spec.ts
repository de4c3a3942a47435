import { describe, expect, it } from '@jest/globals';
import { QuorumUnavailableError } from '../../../lib/core/errors.js';
import { JobHandedOnError } from '../../../lib/schedule/job-handed-on.error.js';
import { logJobsTo, reportDeviationsTo } from '../../../lib/schedule/job-log.js';

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
  it('does not warn of a run that a shutdown hands on', () => {
    const { lines, observer } = logged();
    observer.unfinished?.('report', { scheduledFor, attempt: 1, isRunning: false }, new JobHandedOnError());
    expect(lines).toEqual([
      'log job report of 1970-01-01T00:00:00.000Z is handed on by the shutdown, so that it runs again unless `recover` is false',
    ]);
  });

  it('warns of every other run without a recorded end, with its cause', () => {
    const { lines, observer } = logged();
    observer.unfinished?.('report', { scheduledFor, attempt: 1, isRunning: false }, new Error('lost'));
    expect(lines).toEqual([
      'warn job report of 1970-01-01T00:00:00.000Z has ended here without a record, so that it runs again unless `recover` is false: lost',
    ]);
  });

  it('says of a method that runs on without its lock what follows from it', () => {
    const { lines, observer } = logged();
    observer.unfinished?.('report', { scheduledFor, attempt: 1, isRunning: true }, new Error('lost'));
    expect(lines).toEqual([
      'warn job report of 1970-01-01T00:00:00.000Z has lost its lock, so that it runs again unless `recover` is false; ' +
        'this instance runs no tick of the job until the method returns: lost',
    ]);
  });

  it('names a master with a wrong clock once, and again after it was right', () => {
    const lines: string[] = [];
    const warn = (line: string): void => void lines.push(line);
    const report = reportDeviationsTo({ log: warn, warn, error: warn });
    const late = [{ master: '127.0.0.1:6379', ahead: -3_600_000 }];
    for (const deviations of [[], late, late, [], late]) report(deviations);
    const line = 'the clock of 127.0.0.1:6379 is 60.0 min behind the others, which decide when jobs run: correct it';
    expect(lines).toEqual([line, line]);
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
