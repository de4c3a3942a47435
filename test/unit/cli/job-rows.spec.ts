import { describe, expect, it } from '@jest/globals';
import { JOB_HEAD, jobJson, jobRow, type JobStanding, RUN_HEAD, runRows } from '../../../lib/cli/job-rows.js';
import { table } from '../../../lib/cli/table.js';
import { endRecord, type JobRecord, markRecord, startRecord } from '../../../lib/core/jobs/job-record.js';

const NOON = Date.UTC(2026, 10, 22, 12);
const MINUTE = 60_000;

function started(last?: JobRecord, tick = NOON, attempt = 1): JobRecord {
  return startRecord(last, { tick, attempt }, { holder: 'web-1:1', at: tick + 12 });
}

function standing(record: JobRecord, rest: Partial<JobStanding> = {}): JobStanding {
  return { name: 'report', record, isSettled: true, isHeld: false, ...rest };
}

describe('The rows of jobs', () => {
  const ok = endRecord(started(), { holder: 'web-1:1', at: NOON + 1_512 });

  it('show a run that has ended', () => {
    expect(jobRow(standing(ok))).toEqual(['report', 'ok', '2026-11-22 12:00:00Z', '1.5 s', 'web-1:1', '1', 'yes']);
    expect(runRows(standing(ok))).toEqual([
      ['2026-11-22 12:00:00Z', 'ok', '2026-11-22 12:00:00.012Z', '1.5 s', 'web-1:1', '1', ''],
    ]);
  });

  it('distinguish a tick that runs from one whose instance has the lock no more', () => {
    const again = started(started(ok, NOON + MINUTE), NOON + MINUTE, 2);
    expect(jobRow(standing(again, { isHeld: true })).slice(1)).toEqual(
      ['running', '2026-11-22 12:01:00Z', '-', 'web-1:1', '2', 'yes'], //
    );
    expect(jobRow(standing(again))[1]).toBe('unfinished');
    expect(runRows(standing(again, { isHeld: true })).map((row) => [row[1], row[5]])).toEqual([
      ['running', '2'],
      ['unfinished', '1'],
      ['ok', '1'],
    ]);
  });

  it('show what did not run, without a start', () => {
    const unknown = markRecord(ok, { tick: NOON + MINUTE, state: 'unknown' }, { holder: 'web-2:7', at: NOON + MINUTE });
    expect(jobRow(standing(unknown, { isSettled: false })).slice(1)).toEqual(
      ['unknown', '2026-11-22 12:01:00Z', '-', 'web-2:7', '0', 'no'], //
    );
    const baseline = markRecord(undefined, { tick: NOON, state: 'baseline' }, { holder: 'web-1:1', at: NOON });
    expect(jobRow(standing(baseline))[1]).toBe('baseline');
    expect(runRows(standing(baseline))).toEqual([]);
  });

  it('replace the control characters of names, instances and errors, and stay within 100 columns', () => {
    const holder = `${'a-long-instance-name'.repeat(3)}:1`;
    const begun = startRecord(undefined, { tick: NOON, attempt: 1 }, { holder, at: NOON });
    const failed = endRecord(begun, { holder, at: NOON + 3 }, { message: `\x1b[2Jno such table: ${'x'.repeat(300)}` });
    const hostile = standing(failed, { name: 'a\x1b[31m\nname' });
    const drawn = [table(JOB_HEAD, [jobRow(hostile)]), table(RUN_HEAD, runRows(hostile))].join('\n');
    expect(drawn).not.toContain('\x1b');
    expect(Math.max(...drawn.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100);
  });

  it('are objects with ISO times and milliseconds for programs', () => {
    expect(jobJson(standing(ok))).toEqual({
      name: 'report',
      state: 'ok',
      isSettled: true,
      runs: [
        {
          scheduledFor: '2026-11-22T12:00:00.000Z',
          startedAt: '2026-11-22T12:00:00.012Z',
          endedAt: '2026-11-22T12:00:01.512Z',
          ...{ instance: 'web-1:1', attempt: 1, outcome: 'ok', duration: 1_500 },
        },
      ],
    });
    expect(jobJson(standing(started(ok, NOON + MINUTE), { isHeld: true }))).toMatchObject({
      state: 'running',
      current: { scheduledFor: '2026-11-22T12:01:00.000Z', instance: 'web-1:1', attempt: 1 },
    });
  });
});
