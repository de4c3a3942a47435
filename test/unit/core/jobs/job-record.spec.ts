import { describe, expect, it } from '@jest/globals';
import {
  endRecord,
  firstStartOf,
  jobOfResource,
  type JobRecord,
  jobResource,
  lastFinished,
  markRecord,
  readJobRecord,
  startRecord,
} from '../../../../lib/core/jobs/job-record.js';

const by = (holder: string, at: number) => ({ holder, at });

/** The record after a number of runs that have failed with the same message. */
function afterFailures(count: number, message: string): JobRecord | undefined {
  let record: JobRecord | undefined;
  for (let tick = 1; tick <= count; tick++) {
    const started = startRecord(record, { tick, attempt: 1 }, by('i'.repeat(100), tick));
    record = endRecord(started, by('i'.repeat(100), tick), { message });
  }
  return record;
}

describe('The record of a job', () => {
  it('has the run in its history when the run has ended', () => {
    const started = startRecord(undefined, { tick: 10, attempt: 1 }, by('a', 11));
    expect(started).toEqual({
      ...{ tick: 10, attempt: 1, state: 'started', holder: 'a', at: 11, firstStart: 11, runs: [] },
    });
    expect(endRecord(started, by('a', 15))).toEqual({
      ...started,
      state: 'ok',
      at: 15,
      runs: [{ scheduledFor: 10, startedAt: 11, endedAt: 15, instance: 'a', attempt: 1, outcome: 'ok' }],
    });
  });

  it('keeps an attempt without an end when the tick starts again', () => {
    const first = startRecord(undefined, { tick: 10, attempt: 1 }, by('a', 11));
    const second = endRecord(startRecord(first, { tick: 10, attempt: 2 }, by('b', 20)), by('b', 25));
    expect(second.runs).toEqual([
      { scheduledFor: 10, startedAt: 20, endedAt: 25, instance: 'b', attempt: 2, outcome: 'ok' },
      { scheduledFor: 10, startedAt: 11, instance: 'a', attempt: 1, outcome: 'unfinished' },
    ]);
    expect(lastFinished(second)).toMatchObject({ attempt: 2 });
  });

  it('keeps when the first attempt at a tick began, however many follow, and begins anew with the next tick', () => {
    let record = startRecord(undefined, { tick: 10, attempt: 1 }, by('a', 11));
    for (let attempt = 2; attempt < 60; attempt++)
      record = startRecord(record, { tick: 10, attempt }, by('b', attempt * 10));
    record = endRecord(record, by('b', 700));
    expect(record.runs.some(({ attempt }) => attempt === 1)).toBe(false);
    expect(firstStartOf(record)).toBe(11);
    expect(firstStartOf(startRecord(record, { tick: 800, attempt: 1 }, by('b', 801)))).toBe(801);
  });

  it('knows the first start of a tick from the history if an older version wrote the record', () => {
    const { firstStart, ...first } = startRecord(undefined, { tick: 10, attempt: 1 }, by('old', 11));
    expect(firstStart).toBe(11);
    expect(firstStartOf(first)).toBe(11);
    const second = startRecord(first, { tick: 10, attempt: 2 }, by('new', 20));
    expect(second.firstStart).toBe(11);
    const { firstStart: dropped, ...third } = startRecord(second, { tick: 10, attempt: 3 }, by('old', 30));
    expect(dropped).toBe(11);
    expect(firstStartOf(endRecord(third, by('old', 35)))).toBe(11);
    expect(firstStartOf(markRecord(undefined, { tick: 10, state: 'baseline' }, by('b', 20)))).toBe(Infinity);
  });

  it('knows no finished run while all are unfinished', () => {
    const first = startRecord(undefined, { tick: 10, attempt: 1 }, by('a', 11));
    expect(lastFinished(startRecord(first, { tick: 10, attempt: 2 }, by('b', 20)))).toBeUndefined();
    expect(lastFinished(undefined)).toBeUndefined();
  });

  it('shows the instance whose attempt was abandoned', () => {
    const started = startRecord(undefined, { tick: 10, attempt: 1 }, by('a', 11));
    expect(markRecord(started, { tick: 10, state: 'abandoned' }, by('b', 20))).toEqual({
      ...{ tick: 10, attempt: 1, state: 'abandoned', holder: 'b', at: 20 },
      runs: [{ scheduledFor: 10, startedAt: 11, instance: 'a', attempt: 1, outcome: 'abandoned' }],
    });
  });

  it('shows a tick that is unknown without an attempt', () => {
    expect(markRecord(undefined, { tick: 10, state: 'unknown' }, by('b', 20)).runs).toEqual([
      { scheduledFor: 10, instance: 'b', attempt: 0, outcome: 'unknown' },
    ]);
  });

  it('keeps the attempt at an earlier tick that is unknown with it', () => {
    const started = startRecord(undefined, { tick: 10, attempt: 1 }, by('a', 11));
    expect(markRecord(started, { tick: 30, state: 'unknown' }, by('b', 40))).toEqual({
      ...{ tick: 30, attempt: 0, state: 'unknown', holder: 'b', at: 40 },
      runs: [
        { scheduledFor: 30, instance: 'b', attempt: 0, outcome: 'unknown' },
        { scheduledFor: 10, startedAt: 11, instance: 'a', attempt: 1, outcome: 'unknown' },
      ],
    });
  });

  it('has no history at its baseline', () => {
    expect(markRecord(undefined, { tick: 10, state: 'baseline' }, by('b', 20)).runs).toEqual([]);
  });

  it('keeps the last 20 runs', () => {
    const { runs = [] } = afterFailures(30, 'no') ?? {};
    expect(runs.map(({ scheduledFor }) => scheduledFor)).toEqual(Array.from({ length: 20 }, (_, i) => 30 - i));
  });

  it.each(['x', '€', '\u{1f600}', '\0', '"', '\ud800'])('stays below 9 KiB with errors of %j', (character) => {
    const record = afterFailures(30, character.repeat(1_000));
    expect(record?.runs.length).toBeGreaterThanOrEqual(2);
    expect(Buffer.byteLength(JSON.stringify(record))).toBeLessThan(9 * 1_024);
  });

  it('keeps 200 characters of an error', () => {
    expect(afterFailures(1, 'x'.repeat(201))?.runs[0]?.error).toBe('x'.repeat(200));
  });

  it('is recognized after a round trip through JSON, and nothing else is', () => {
    const record = afterFailures(2, 'no');
    expect(readJobRecord(JSON.parse(JSON.stringify(record)))).toEqual(record);
    for (const other of [undefined, null, 1, 'ok', [], {}, { ...record, state: 'done' }, { ...record, tick: '1' }]) {
      expect(readJobRecord(other)).toBeUndefined();
    }
  });

  it('is kept with a resource that names the job', () => {
    expect(jobOfResource(jobResource('report'))).toBe('report');
    expect(jobOfResource('order:1')).toBeUndefined();
  });
});
