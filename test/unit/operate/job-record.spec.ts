import { describe, expect, it } from '@jest/globals';
import { decideJob, type JobDecision, type JobPolicy, type JobSituation } from '../../../lib/schedule/job-policy.js';
import {
  endRecord,
  firstStartOf,
  jobOfResource,
  type JobRecord,
  jobResource,
  type JobState,
  lastFinished,
  markRecord,
  readJobRecord,
  startRecord,
} from '../../../lib/operate/job-record.js';
import { IntervalSchedule } from '../../../lib/schedule/cron-schedule.js';

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
    const begun = startRecord(first, { tick: 10, attempt: 2 }, by('b', 20));
    expect([lastFinished(begun), lastFinished(undefined)]).toEqual([undefined, undefined]);
    const second = endRecord(begun, by('b', 25));
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

  it('shows the instance whose attempt was abandoned', () => {
    const started = startRecord(undefined, { tick: 10, attempt: 1 }, by('a', 11));
    expect(markRecord(started, { tick: 10, state: 'abandoned' }, by('b', 20))).toEqual({
      ...{ tick: 10, attempt: 1, state: 'abandoned', holder: 'b', at: 20 },
      runs: [{ scheduledFor: 10, startedAt: 11, instance: 'a', attempt: 1, outcome: 'abandoned' }],
    });
  });

  it('shows what did not run: an unknown tick, with an earlier attempt that is unknown with it, and no baseline', () => {
    const unknown = { scheduledFor: 10, instance: 'b', attempt: 0, outcome: 'unknown' };
    expect(markRecord(undefined, { tick: 10, state: 'unknown' }, by('b', 20)).runs).toEqual([unknown]);
    expect(markRecord(undefined, { tick: 10, state: 'baseline' }, by('b', 20)).runs).toEqual([]);
    const started = startRecord(undefined, { tick: 10, attempt: 1 }, by('a', 11));
    expect(markRecord(started, { tick: 30, state: 'unknown' }, by('b', 40))).toEqual({
      ...{ tick: 30, attempt: 0, state: 'unknown', holder: 'b', at: 40 },
      runs: [
        { scheduledFor: 30, instance: 'b', attempt: 0, outcome: 'unknown' },
        { scheduledFor: 10, startedAt: 11, instance: 'a', attempt: 1, outcome: 'unknown' },
      ],
    });
  });

  it('keeps the last 20 runs, and 200 characters of an error', () => {
    expect(afterFailures(1, 'x'.repeat(201))?.runs[0]?.error).toBe('x'.repeat(200));
    const { runs = [] } = afterFailures(30, 'no') ?? {};
    expect(runs.map(({ scheduledFor }) => scheduledFor)).toEqual(Array.from({ length: 20 }, (_, i) => 30 - i));
  });

  it.each(['x', '€', '\u{1f600}', '\0', '"', '\ud800'])('stays below 9 KiB with errors of %j', (character) => {
    const record = afterFailures(30, character.repeat(1_000));
    expect(record?.runs.length).toBeGreaterThanOrEqual(2);
    expect(Buffer.byteLength(JSON.stringify(record))).toBeLessThan(9 * 1_024);
  });

  it('is recognized after a round trip through JSON, and nothing else is', () => {
    const record = afterFailures(2, 'no');
    expect(readJobRecord(JSON.parse(JSON.stringify(record)))).toEqual(record);
    for (const other of [undefined, null, 1, 'ok', [], {}, { ...record, state: 'done' }, { ...record, tick: '1' }]) {
      expect(readJobRecord(other)).toBeUndefined();
    }
  });

  it('is kept with a resource that names the job', () =>
    expect([jobOfResource(jobResource('report')), jobOfResource('order:1')]).toEqual(['report', undefined]));
});

/** The ticks of an hourly job are numbered. */
const HOUR = 3_600_000;
const TOLERANCE = 60_000;
const SECOND = 1_000;
const T = (tick: number, later = 0): number => (500_000 + tick) * HOUR + later;
const soon = (tick: number): number => T(tick, SECOND);
const schedule = new IntervalSchedule(HOUR);

type SkipReason = Extract<JobDecision, { action: 'skip' }>['reason'];
type MarkedState = Extract<JobDecision, { action: 'mark' }>['state'];
type Situation = Partial<JobSituation>;
type Case = [title: string, situation: Situation, decision: JobDecision, policy?: Partial<JobPolicy>];

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
const skip = (tick: number, reason: SkipReason): JobDecision => ({ action: 'skip', tick: T(tick), reason });
const mark = (tick: number, state: MarkedState): JobDecision => ({ action: 'mark', tick: T(tick), state });
const unknown = (tick: number): JobDecision => mark(tick, 'unknown');
const REST: JobDecision = { action: 'rest' };
const CATCH_UP = { catchUp: true };

/** Nothing is due, at a time. */
const at = (time: number, record?: JobRecord): Situation => ({ record, time });

/** A tick is due, at its own time or at another one. */
const due = (tick: number, record?: JobRecord, time = T(tick)): Situation => ({ record, due: T(tick), time });

/** The same after a loss: the masters vote since the time of a tick, or somewhat later. */
const lost = (tick: number, situation: Situation, later = 0): Situation => {
  return { ...situation, since: T(tick, later) };
};

/** The record of a tick that ran from its nominal time until `end`. */
const until = (end: number, tick: number, state: JobState = 'ok'): JobRecord => after(tick, state, { end });

const CASES: readonly Case[] = [
  // A tick of this instance.
  ['runs the tick that is due', due(2, after(1)), run(2)],
  ['runs after a failed tick', due(2, after(1, 'failed')), run(2)],
  ['runs after a baseline', due(2, after(1, 'baseline')), run(2)],
  ['runs a tick after missing some', due(9, after(1)), run(9)],
  ['runs a tick for which it waited long', due(2, after(1), T(2, 50 * 60_000)), run(2)],
  // Finished ticks.
  ['skips a tick that has run', due(2, after(2)), skip(2, 'finished')],
  ['skips a tick that has failed', due(2, after(2, 'failed')), skip(2, 'finished')],
  ['skips an abandoned tick', due(2, after(2, 'abandoned')), skip(2, 'abandoned')],
  ['skips an unknown tick', due(2, after(2, 'unknown')), skip(2, 'unknown')],
  ['skips a tick that a later one has passed', due(2, after(3), T(3)), skip(2, 'superseded')],
  ['skips a finished tick at once, however early', due(9, after(9), T(2)), skip(9, 'finished')],
  ['rests if nothing is due', at(T(3), after(2)), REST],
  ['rests without a record if nothing is due', { time: T(3) }, REST],
  // A runner that is gone.
  ['runs a tick again whose runner is gone', due(2, after(2, 'started')), run(2, 2)],
  ['runs it before its own tick', due(3, after(2, 'started')), run(2, 2)],
  ['runs it if nothing is due', at(T(3), after(2, 'started')), run(2, 2)],
  [
    'runs its own tick after the repeated one, although both were late',
    due(3, after(2, 'ok', { attempt: 2, start: T(3, 1), end: soon(3) }), soon(3)),
    run(3),
  ],
  ['abandons it without recovery', due(3, after(2, 'started')), mark(2, 'abandoned'), { recover: false }],
  ['runs it before it catches up', at(T(9), after(2, 'started')), run(2, 2), CATCH_UP],
  // Overlap.
  ['skips a tick that came due while the last one ran', due(2, until(soon(2), 1), soon(2)), skip(2, 'overlap')],
  [
    'skips a tick that came due while an earlier attempt at the last one ran',
    due(
      2,
      { ...after(1, 'ok', { attempt: 2, start: soon(2), end: T(2, 2 * SECOND) }), firstStart: T(1) },
      T(2, 3 * SECOND),
    ),
    skip(2, 'overlap'),
  ],
  [
    'runs a queued tick that came due while the last one ran',
    due(2, until(soon(2), 1), soon(2)),
    run(2),
    { overlap: 'queue' },
  ],
  ['runs a tick that came due when the last one had just ended', due(2, until(T(2), 1)), run(2)],
  [
    'does not catch up with a tick that came due while the last one ran',
    at(T(2, HOUR / 2), until(soon(2), 1)),
    skip(2, 'overlap'),
    CATCH_UP,
  ],
  // Catching up.
  ['runs the last tick that was missed', at(T(9, HOUR / 2), after(1)), run(9), CATCH_UP],
  ['does not catch up by default', at(T(9, HOUR / 2), after(1)), REST],
  ['rests if nothing was missed', at(T(9, HOUR / 2), after(9)), REST, CATCH_UP],
  ['runs a later tick than the due one if it has passed', due(2, after(1), T(3)), run(3), CATCH_UP],
  // No record.
  ['runs the due tick of a job without a record', { due: T(2), time: T(2, HOUR / 2) }, run(2)],
  ['stores a baseline instead of old ticks', { time: T(2, TOLERANCE) }, mark(2, 'baseline'), CATCH_UP],
  ['runs no tick that came due a moment before the first start', { time: T(2, 1) }, mark(2, 'baseline'), CATCH_UP],
  // Lost records.
  ['runs a tick that is later than the loss', lost(5, due(6, after(1))), run(6)],
  ['marks a tick of the time before the loss', lost(5, due(5, after(1), soon(5))), unknown(5)],
  ['marks a tick that may have started early before the loss', lost(6, due(6, after(1)), -TOLERANCE), unknown(6)],
  [
    'marks the ticks after a started one of the time before the loss in one step with it',
    lost(5, due(6, after(4, 'started'))),
    unknown(5),
  ],
  ['marks a started tick that is the last one before the loss', lost(5, due(6, after(5, 'started'))), unknown(5)],
  ['runs a started tick again that is later than the loss', lost(5, at(soon(6), after(6, 'started'))), run(6, 2)],
  ['marks a due tick if no record is left', lost(5, due(5)), unknown(5)],
  ['marks a missed tick rather than catching up with it', lost(5, at(soon(5), after(1))), unknown(5), CATCH_UP],
  ['skips what the surviving record shows as finished', lost(5, due(5, after(5))), skip(5, 'finished')],
  [
    'marks the last tick before the loss although none is due, for the next holder',
    lost(5, at(soon(5), after(1))),
    unknown(5),
  ],
  [
    'marks a tick soon after the loss although none is due, because it may have started early',
    lost(6, at(T(6, -SECOND), after(1)), -TOLERANCE),
    unknown(6),
  ],
  [
    'stores a baseline if no record is left, or none ever was, and none is due',
    lost(5, at(soon(5))),
    mark(5, 'baseline'),
  ],
  ['rests if the surviving record is of a tick after the loss', lost(5, at(soon(6), after(6))), REST],
];

const POLICY: JobPolicy = { recover: true, catchUp: false, overlap: 'skip' };
const FIRST = { record: undefined, since: undefined, due: undefined };

// Protocol 12.5 and 12.6
describe('decideJob', () => {
  it.each(CASES)('%s', (_, situation, decision, policy = {}) =>
    expect(decideJob({ ...FIRST, time: T(0), ...situation }, schedule, { ...POLICY, ...policy })).toEqual(decision),
  );

  it('tolerates half a period if that is less than a minute', () => {
    const short = new IntervalSchedule(10 * SECOND);
    const decide = (since: number) => decideJob({ ...FIRST, due: T(0), time: T(0), since }, short, POLICY);
    expect(decide(T(0, -5 * SECOND))).toMatchObject({ action: 'mark', state: 'unknown' });
    expect(decide(T(0, -5 * SECOND - 1))).toMatchObject({ action: 'run' });
  });
});
