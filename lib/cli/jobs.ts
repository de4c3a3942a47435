import { isLockError, type MasterReport } from '../index.js';
import * as admin from '../admin/admin.js';
import { describeReply, display, jobRecords } from '../internal.js';
import type { CommandContext } from './session.js';
import { type Paint, plain, table, type Terminal } from './terminal.js';

const JOB_HEAD = ['job', 'state', 'last run', 'took', 'instance', 'attempt', 'settled'];
const RUN_HEAD = ['scheduled', 'outcome', 'started', 'took', 'instance', 'attempt', 'error'];

export function jobRow(status: admin.JobStatus): string[] {
  const { name, isSettled } = status;
  const { scheduledFor, instance, attempt, ...last } = lastOf(status.record);
  return [
    ...[nameOf(name), stateOf(status), momentOf(scheduledFor), took(last), plain(instance)],
    ...[String(attempt), isSettled ? 'yes' : 'no'],
  ];
}

export function runRows(status: admin.JobStatus): string[][] {
  const { record } = status;
  const runs = record.runs.map((run) => runRow(run, run.outcome));
  return record.state === 'started' ? [runRow(lastOf(record), stateOf(status)), ...runs] : runs;
}

// For programs: moments as ISO strings, durations in milliseconds.
export function jobJson(status: admin.JobStatus): object {
  const { name, record, isSettled } = status;
  const { scheduledFor, startedAt, instance, attempt } = lastOf(record);
  const current = { scheduledFor: iso(scheduledFor), startedAt: iso(startedAt), instance, attempt };
  return {
    name,
    state: stateOf(status),
    isSettled,
    ...(record.state === 'started' && { current }),
    runs: record.runs.map((run) => ({
      ...run,
      ...{ scheduledFor: iso(run.scheduledFor), startedAt: iso(run.startedAt), endedAt: iso(run.endedAt) },
      duration: lengthOf(run),
    })),
  };
}

// `unfinished`: the tick was started, and its instance has the lock no more.
function stateOf({ record: { state }, isHeld }: admin.JobStatus): string {
  if (state !== 'started') return state;
  return isHeld ? 'running' : 'unfinished';
}

// The baseline of a new job has no run.
function lastOf(record: jobRecords.JobRecord): Omit<jobRecords.RecordedRun, 'outcome'> {
  const { tick, at, holder, attempt, state, runs } = record;
  if (state === 'started') return { scheduledFor: tick, startedAt: at, instance: holder, attempt };
  return runs[0] ?? { scheduledFor: tick, instance: holder, attempt };
}

function runRow(run: Omit<jobRecords.RecordedRun, 'outcome'>, outcome: string): string[] {
  const { scheduledFor, startedAt, instance, attempt, error } = run;
  return [
    ...[momentOf(scheduledFor), outcome, startedAt === undefined ? '-' : momentOf(startedAt), took(run)],
    ...[plain(instance), String(attempt), error === undefined ? '' : plain(error)],
  ];
}

function nameOf(name: string): string {
  return plain(name) === name ? name : display.showNames([name]);
}

function took(run: Pick<jobRecords.RecordedRun, 'startedAt' | 'endedAt'>): string {
  return display.duration(lengthOf(run));
}

function lengthOf({ startedAt, endedAt }: Pick<jobRecords.RecordedRun, 'startedAt' | 'endedAt'>): number | undefined {
  return startedAt === undefined || endedAt === undefined ? undefined : Math.max(0, endedAt - startedAt);
}

function iso(moment: number | undefined): string | undefined {
  return moment === undefined ? undefined : new Date(moment).toISOString();
}

// `2026-11-22 03:00:00Z`, with fractions of a second only where there are any.
function momentOf(moment: number): string {
  return new Date(moment).toISOString().replace('T', ' ').replace('.000Z', 'Z');
}

// Of the state in the table of jobs, and of the outcome in that of runs.
const STATE_COLUMN = 1;

export async function jobs(context: CommandContext, name: string | undefined): Promise<number> {
  if (name !== undefined) admin.resolveResources('name', jobRecords.jobResource(name));
  try {
    return await admin.inSession(context, (session) =>
      name === undefined ? showAll(session, context) : showOne(session, context, name),
    );
  } catch (error) {
    if (!isLockError(error) || error.code !== 'QUORUM_UNAVAILABLE') throw error;
    context.terminal.complain(error.message);
    return 1;
  }
}

async function showAll(session: admin.Session, context: CommandContext): Promise<number> {
  const { terminal, json, settings } = context;
  const { jobs: found, isComplete, unasked } = await admin.listJobs(session, settings);
  if (json) terminal.print(JSON.stringify({ jobs: found.map(jobJson), unasked }, null, 2));
  else if (isComplete) {
    if (found.length > 0) terminal.print(table(JOB_HEAD, found.map(jobRow), paintState(terminal)));
    const where = found.length > 0 ? '' : ` with a record${underPrefix(context)}`;
    terminal.print(terminal.paint('bold', `${display.counted(found.length, 'job')}${where}`));
  }
  complain(unasked, context);
  if (isComplete) return 0;
  terminal.complain('too few masters answer to know the records of jobs');
  return 1;
}

async function showOne(session: admin.Session, context: CommandContext, name: string): Promise<number> {
  const { terminal, json } = context;
  const status = await admin.readJobStatus(session, name);
  complain(session.absent, context);
  if (!status) {
    terminal.complain(`the job ${display.showNames([name])} has no record${underPrefix(context)}`);
    return 1;
  }
  if (json) terminal.print(JSON.stringify(jobJson(status), null, 2));
  else showRuns(status, terminal);
  return 0;
}

function showRuns(status: admin.JobStatus, terminal: Terminal): void {
  const { name, isSettled } = status;
  const rows = runRows(status);
  if (rows.length > 0) terminal.print(table(RUN_HEAD, rows, paintState(terminal)));
  const certainty = isSettled ? '' : ', but no majority of the masters has stored that: a newer record may exist';
  terminal.print(terminal.paint('bold', `${display.showNames([name])} is ${stateOf(status)}${certainty}`));
}

function complain(unasked: readonly MasterReport[], { terminal }: CommandContext): void {
  for (const { master, answer } of unasked) terminal.complain(`${master} was not asked: ${describeReply(answer)}`);
}

function underPrefix({ settings }: CommandContext): string {
  return ` with the prefix ${display.showNames([settings.keyPrefix])} (--prefix names another)`;
}

function paintState(terminal: Terminal): Paint {
  return (line, { row, column }) => {
    if (column !== STATE_COLUMN) return line;
    const state = row[column] ?? '';
    if (state === 'ok') return terminal.paint('green', line);
    return terminal.paint(state === 'running' || state === 'baseline' ? 'yellow' : 'red', line);
  };
}
