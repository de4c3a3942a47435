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
  type JobState,
} from '../../../../lib/core/jobs/job-record.js';
import {
  decideJob,
  type JobDecision,
  type JobPolicy,
  type JobSituation,
} from '../../../../lib/core/jobs/job-policy.js';
import { IntervalSchedule } from '../../../../lib/schedule/interval-schedule.js';

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

/** The ticks of an hourly job are numbered. A tick may start half a minute to a minute early. */
const HOUR = 3_600_000;
const TOLERANCE = 60_000;
const SECOND = 1_000;
const T = (tick: number, later = 0): number => (500_000 + tick) * HOUR + later;
const schedule = new IntervalSchedule(HOUR);

interface Case {
  readonly title: string;
  readonly situation: Partial<JobSituation>;
  readonly policy?: Partial<JobPolicy>;
  readonly decision: JobDecision;
}

/** The record of a tick that ran from its nominal time until `end`. */
function after(
  tick: number,
  state: JobState = 'ok',
  { attempt = 1, start = T(tick), end = T(tick, SECOND) } = {},
): JobRecord {
  const run = { scheduledFor: T(tick), startedAt: start, endedAt: end, instance: 'a', attempt, outcome: 'ok' as const };
  const runs = state === 'ok' || state === 'failed' ? [{ ...run, outcome: state }] : [];
  return { tick: T(tick), attempt, holder: 'a', state, at: state === 'started' ? start : end, runs };
}

const run = (tick: number, attempt = 1): JobDecision => ({ action: 'run', tick: T(tick), attempt });
const skip = (tick: number, reason: Extract<JobDecision, { action: 'skip' }>['reason']): JobDecision => ({
  action: 'skip',
  tick: T(tick),
  reason,
});
const mark = (tick: number, state: 'abandoned' | 'unknown' | 'baseline'): JobDecision => ({
  action: 'mark',
  tick: T(tick),
  state,
});
const wait = (tick: number): JobDecision => ({ action: 'wait', tick: T(tick), until: T(tick, -TOLERANCE) });
const REST: JobDecision = { action: 'rest' };

const CASES: readonly Case[] = [
  // A tick of this instance.
  { title: 'runs the tick that is due', situation: { record: after(1), due: T(2), time: T(2) }, decision: run(2) },
  {
    title: 'runs after a failed tick',
    situation: { record: after(1, 'failed'), due: T(2), time: T(2) },
    decision: run(2),
  },
  {
    title: 'runs after an abandoned tick',
    situation: { record: after(1, 'abandoned'), due: T(2), time: T(2) },
    decision: run(2),
  },
  {
    title: 'runs after an unknown tick',
    situation: { record: after(1, 'unknown'), due: T(2), time: T(2) },
    decision: run(2),
  },
  {
    title: 'runs after a baseline',
    situation: { record: after(1, 'baseline'), due: T(2), time: T(2) },
    decision: run(2),
  },
  { title: 'runs a tick after missing some', situation: { record: after(1), due: T(9), time: T(9) }, decision: run(9) },
  {
    title: 'runs a tick for which it waited long',
    situation: { record: after(1), due: T(2), time: T(2, 50 * 60_000) },
    decision: run(2),
  },
  // Finished ticks.
  {
    title: 'skips a tick that has run',
    situation: { record: after(2), due: T(2), time: T(2) },
    decision: skip(2, 'finished'),
  },
  {
    title: 'skips a tick that has failed',
    situation: { record: after(2, 'failed'), due: T(2), time: T(2) },
    decision: skip(2, 'finished'),
  },
  {
    title: 'skips an abandoned tick',
    situation: { record: after(2, 'abandoned'), due: T(2), time: T(2) },
    decision: skip(2, 'abandoned'),
  },
  {
    title: 'skips an unknown tick',
    situation: { record: after(2, 'unknown'), due: T(2), time: T(2) },
    decision: skip(2, 'unknown'),
  },
  {
    title: 'skips the tick of a baseline',
    situation: { record: after(2, 'baseline'), due: T(2), time: T(2) },
    decision: skip(2, 'baseline'),
  },
  {
    title: 'skips a tick that a later one has passed',
    situation: { record: after(3), due: T(2), time: T(3) },
    decision: skip(2, 'superseded'),
  },
  {
    title: 'skips a finished tick at once, however early',
    situation: { record: after(9), due: T(9), time: T(2) },
    decision: skip(9, 'finished'),
  },
  { title: 'rests if nothing is due', situation: { record: after(2), time: T(3) }, decision: REST },
  { title: 'rests without a record if nothing is due', situation: { time: T(3) }, decision: REST },
  // The masters' clocks.
  {
    title: 'runs a tick as early as the tolerance allows',
    situation: { record: after(1), due: T(2), time: T(2, -TOLERANCE) },
    decision: run(2),
  },
  {
    title: 'waits with a tick that is earlier',
    situation: { record: after(1), due: T(2), time: T(2, -TOLERANCE - 1) },
    decision: wait(2),
  },
  {
    title: 'waits with the tick of a clock that is a day ahead',
    situation: { record: after(1), due: T(25), time: T(1, HOUR / 2) },
    decision: wait(25),
  },
  { title: 'waits without a record, too', situation: { due: T(25), time: T(1) }, decision: wait(25) },
  {
    title: 'runs what was missed before it waits',
    situation: { record: after(1), due: T(25), time: T(3) },
    policy: { catchUp: true },
    decision: run(3),
  },
  {
    title: 'waits if nothing was missed',
    situation: { record: after(3), due: T(25), time: T(3, SECOND) },
    policy: { catchUp: true },
    decision: wait(25),
  },
  {
    title: 'waits if what was missed is skipped',
    situation: { record: after(1, 'ok', { end: T(2, 1) }), due: T(25), time: T(2, 2) },
    policy: { catchUp: true },
    decision: wait(25),
  },
  // A runner that is gone.
  {
    title: 'runs a tick again whose runner is gone',
    situation: { record: after(2, 'started'), due: T(2), time: T(2) },
    decision: run(2, 2),
  },
  {
    title: 'counts the attempts',
    situation: { record: after(2, 'started', { attempt: 6 }), due: T(2), time: T(2) },
    decision: run(2, 7),
  },
  {
    title: 'runs it before its own tick',
    situation: { record: after(2, 'started'), due: T(3), time: T(3) },
    decision: run(2, 2),
  },
  { title: 'runs it if nothing is due', situation: { record: after(2, 'started'), time: T(3) }, decision: run(2, 2) },
  {
    title: 'runs its own tick after the repeated one, although both were late',
    situation: {
      record: after(2, 'ok', { attempt: 2, start: T(3, 1), end: T(3, SECOND) }),
      due: T(3),
      time: T(3, SECOND),
    },
    decision: run(3),
  },
  {
    title: 'abandons it without recovery',
    situation: { record: after(2, 'started'), due: T(3), time: T(3) },
    policy: { recover: false },
    decision: mark(2, 'abandoned'),
  },
  {
    title: 'runs it before it catches up',
    situation: { record: after(2, 'started'), time: T(9) },
    policy: { catchUp: true },
    decision: run(2, 2),
  },
  // Overlap.
  {
    title: 'skips a tick that came due while the last one ran',
    situation: { record: after(1, 'ok', { end: T(2, SECOND) }), due: T(2), time: T(2, SECOND) },
    decision: skip(2, 'overlap'),
  },
  {
    title: 'skips it after a failure, too',
    situation: { record: after(1, 'failed', { end: T(2, SECOND) }), due: T(2), time: T(2, SECOND) },
    decision: skip(2, 'overlap'),
  },
  {
    title: 'skips a tick that came due while an earlier attempt at the last one ran',
    situation: {
      record: { ...after(1, 'ok', { attempt: 2, start: T(2, SECOND), end: T(2, 2 * SECOND) }), firstStart: T(1) },
      ...{ due: T(2), time: T(2, 3 * SECOND) },
    },
    decision: skip(2, 'overlap'),
  },
  {
    title: 'runs a queued tick that came due while the last one ran',
    situation: { record: after(1, 'ok', { end: T(2, SECOND) }), due: T(2), time: T(2, SECOND) },
    policy: { overlap: 'queue' },
    decision: run(2),
  },
  {
    title: 'runs a tick that came due when the last one had just ended',
    situation: { record: after(1, 'ok', { end: T(2) }), due: T(2), time: T(2) },
    decision: run(2),
  },
  {
    title: 'does not catch up with a tick that came due while the last one ran',
    situation: { record: after(1, 'ok', { end: T(2, SECOND) }), time: T(2, HOUR / 2) },
    policy: { catchUp: true },
    decision: skip(2, 'overlap'),
  },
  // Catching up.
  {
    title: 'runs the last tick that was missed',
    situation: { record: after(1), time: T(9, HOUR / 2) },
    policy: { catchUp: true },
    decision: run(9),
  },
  { title: 'does not catch up by default', situation: { record: after(1), time: T(9, HOUR / 2) }, decision: REST },
  {
    title: 'rests if nothing was missed',
    situation: { record: after(9), time: T(9, HOUR / 2) },
    policy: { catchUp: true },
    decision: REST,
  },
  {
    title: 'runs a later tick than the due one if it is due by the clocks of the masters',
    situation: { record: after(1), due: T(2), time: T(3) },
    policy: { catchUp: true },
    decision: run(3),
  },
  // No record.
  {
    title: 'runs the due tick of a job without a record',
    situation: { due: T(2), time: T(2, HOUR / 2) },
    decision: run(2),
  },
  {
    title: 'stores a baseline in place of old ticks',
    situation: { time: T(2, TOLERANCE) },
    policy: { catchUp: true },
    decision: mark(2, 'baseline'),
  },
  {
    title: 'runs a tick that came due a moment before the first start',
    situation: { time: T(2, TOLERANCE - 1) },
    policy: { catchUp: true },
    decision: run(2),
  },
  // Uncertain state: data of a master began at tick 5.
  {
    title: 'runs a tick that is later than the loss',
    situation: { record: after(1), isCertain: false, bornAt: T(5), due: T(6), time: T(6) },
    decision: run(6),
  },
  {
    title: 'marks a tick of the time before the loss',
    situation: { record: after(1), isCertain: false, bornAt: T(5), due: T(5), time: T(5, SECOND) },
    decision: mark(5, 'unknown'),
  },
  {
    title: 'marks a tick that may have started early before the loss',
    situation: { record: after(1), isCertain: false, bornAt: T(6, -TOLERANCE), due: T(6), time: T(6) },
    decision: mark(6, 'unknown'),
  },
  {
    title: 'marks the ticks after a started one of the time before the loss in one step with it',
    situation: { record: after(4, 'started'), isCertain: false, bornAt: T(5), due: T(6), time: T(6) },
    decision: mark(5, 'unknown'),
  },
  {
    title: 'marks a started tick that is the last one before the loss',
    situation: { record: after(5, 'started'), isCertain: false, bornAt: T(5), due: T(6), time: T(6) },
    decision: mark(5, 'unknown'),
  },
  {
    title: 'runs a started tick again that is later than the loss',
    situation: { record: after(6, 'started'), isCertain: false, bornAt: T(5), time: T(6, SECOND) },
    decision: run(6, 2),
  },
  {
    title: 'marks all due ticks if the time of the loss is unknown',
    situation: { record: after(1), isCertain: false, due: T(6), time: T(6) },
    decision: mark(6, 'unknown'),
  },
  {
    title: 'marks a due tick if no record is left',
    situation: { isCertain: false, bornAt: T(5), due: T(5), time: T(5) },
    decision: mark(5, 'unknown'),
  },
  {
    title: 'marks a missed tick rather than catching up with it',
    situation: { record: after(1), isCertain: false, bornAt: T(5), time: T(5, SECOND) },
    policy: { catchUp: true },
    decision: mark(5, 'unknown'),
  },
  {
    title: 'skips what the surviving record shows as finished',
    situation: { record: after(5), isCertain: false, bornAt: T(5), due: T(5), time: T(5) },
    decision: skip(5, 'finished'),
  },
  {
    title: 'marks the last tick before the loss although none is due, for the next holder',
    situation: { record: after(1), isCertain: false, bornAt: T(5), time: T(5, SECOND) },
    decision: mark(5, 'unknown'),
  },
  {
    title: 'marks a tick soon after the loss although none is due, because it may have started early',
    situation: { record: after(1), isCertain: false, bornAt: T(6, -TOLERANCE), time: T(6, -SECOND) },
    decision: mark(6, 'unknown'),
  },
  {
    title: 'marks the last tick before the loss although no record is left and none is due',
    situation: { isCertain: false, bornAt: T(5), time: T(5, SECOND) },
    decision: mark(5, 'unknown'),
  },
  {
    title: 'rests if the surviving record is of a tick after the loss',
    situation: { record: after(6), isCertain: false, bornAt: T(5), time: T(6, SECOND) },
    decision: REST,
  },
];

// Protocol 14.5 and 14.6
describe('decideJob', () => {
  it.each(CASES)('$title', ({ situation, policy, decision }) => {
    const complete = {
      record: undefined,
      isCertain: true,
      bornAt: undefined,
      time: T(0),
      due: undefined,
      ...situation,
    };
    const defaults: JobPolicy = { recover: true, catchUp: false, overlap: 'skip' };
    expect(decideJob(complete, schedule, { ...defaults, ...policy })).toEqual(decision);
  });

  it('tolerates half a period if that is less than a minute', () => {
    const short = new IntervalSchedule(10 * SECOND);
    const policy: JobPolicy = { recover: true, catchUp: false, overlap: 'skip' };
    const situation = { record: undefined, isCertain: true, bornAt: undefined, due: T(0) };
    expect(decideJob({ ...situation, time: T(0, -5 * SECOND) }, short, policy)).toMatchObject({ action: 'run' });
    expect(decideJob({ ...situation, time: T(0, -5 * SECOND - 1) }, short, policy)).toEqual({
      action: 'wait',
      tick: T(0),
      until: T(0, -5 * SECOND),
    });
  });
});
