import { duration, showNames } from '../core/display.js';
import type { JobRecord, JobState, RecordedRun } from '../core/jobs/job-record.js';
import { plain } from './table.js';

/** A record that was read, and whether its lock is held now. */
export interface JobStanding {
  readonly name: string;
  readonly record: JobRecord;
  /** Whether a majority of the masters has stored the record. */
  readonly isSettled: boolean;
  /** Whether the lock of the job is held, so that a started tick still runs. */
  readonly isHeld: boolean;
}

/** How the last tick of a job stands. `unfinished`: it was started, and its instance has the lock no more. */
export type JobStandingState = Exclude<JobState, 'started'> | 'running' | 'unfinished';

export const JOB_HEAD = ['job', 'state', 'last run', 'took', 'instance', 'attempt', 'settled'];
export const RUN_HEAD = ['scheduled', 'outcome', 'started', 'took', 'instance', 'attempt', 'error'];

/** Cells under {@link JOB_HEAD}. */
export function jobRow(standing: JobStanding): string[] {
  const { name, isSettled } = standing;
  const { scheduledFor, instance, attempt, ...last } = lastOf(standing.record);
  return [
    ...[nameOf(name), stateOf(standing), momentOf(scheduledFor), took(last), plain(instance)],
    ...[String(attempt), isSettled ? 'yes' : 'no'],
  ];
}

/** Rows under {@link RUN_HEAD}: the tick that was started, if there is one, and the recorded runs, newest first. */
export function runRows(standing: JobStanding): string[][] {
  const { record } = standing;
  const runs = record.runs.map((run) => runRow(run, run.outcome));
  return record.state === 'started' ? [runRow(lastOf(record), stateOf(standing)), ...runs] : runs;
}

/** A job for programs: moments as ISO strings, durations in milliseconds. */
export function jobJson(standing: JobStanding): object {
  const { name, record, isSettled } = standing;
  const { scheduledFor, startedAt, instance, attempt } = lastOf(record);
  const current = { scheduledFor: iso(scheduledFor), startedAt: iso(startedAt), instance, attempt };
  return {
    name,
    state: stateOf(standing),
    isSettled,
    ...(record.state === 'started' && { current }),
    runs: record.runs.map((run) => ({
      ...run,
      ...{ scheduledFor: iso(run.scheduledFor), startedAt: iso(run.startedAt), endedAt: iso(run.endedAt) },
      duration: lengthOf(run),
    })),
  };
}

export function stateOf({ record: { state }, isHeld }: Pick<JobStanding, 'record' | 'isHeld'>): JobStandingState {
  if (state !== 'started') return state;
  return isHeld ? 'running' : 'unfinished';
}

/** The last tick, as a run. The baseline of a new job has none. */
function lastOf(record: JobRecord): Omit<RecordedRun, 'outcome'> {
  const { tick, at, holder, attempt, state, runs } = record;
  if (state === 'started') return { scheduledFor: tick, startedAt: at, instance: holder, attempt };
  return runs[0] ?? { scheduledFor: tick, instance: holder, attempt };
}

function runRow(run: Omit<RecordedRun, 'outcome'>, outcome: string): string[] {
  const { scheduledFor, startedAt, instance, attempt, error } = run;
  return [
    ...[momentOf(scheduledFor), outcome, startedAt === undefined ? '-' : momentOf(startedAt), took(run)],
    ...[plain(instance), String(attempt), error === undefined ? '' : plain(error)],
  ];
}

/** Names rarely have characters that need quotes. */
function nameOf(name: string): string {
  return plain(name) === name ? name : showNames([name]);
}

function took(run: Pick<RecordedRun, 'startedAt' | 'endedAt'>): string {
  return duration(lengthOf(run));
}

function lengthOf({ startedAt, endedAt }: Pick<RecordedRun, 'startedAt' | 'endedAt'>): number | undefined {
  return startedAt === undefined || endedAt === undefined ? undefined : Math.max(0, endedAt - startedAt);
}

function iso(moment: number | undefined): string | undefined {
  return moment === undefined ? undefined : new Date(moment).toISOString();
}

/** `2026-11-22 03:00:00Z`, with fractions of a second only where there are any. */
function momentOf(moment: number): string {
  return new Date(moment).toISOString().replace('T', ' ').replace('.000Z', 'Z');
}
