import { counted, duration, showNames } from '../core/display.js';
import {
  jobOfResource,
  type JobRecord,
  jobResource,
  type JobState,
  readJobRecord,
  type RecordedRun,
} from '../core/jobs/job-record.js';
import { type Paint, plain, table, type Terminal } from './terminal.js';
import { literally } from '../redis/permissions.js';
import { describeReply, isLockError, type MasterReport } from '../core/errors.js';
import { Keyspace } from '../core/keyspace.js';
import { type CommandContext, inSession, type Session } from './session.js';
import { quorumOf } from '../core/acquire/quorum-call.js';
import { resolveResources } from '../core/settings/resources.js';

interface JobStanding {
  readonly name: string;
  readonly record: JobRecord;
  // A majority of the masters has stored the record.
  readonly isSettled: boolean;
  // The lock of the job is held, so that a started tick still runs.
  readonly isHeld: boolean;
}

// `unfinished`: the tick was started, and its instance has the lock no more.
type JobStandingState = Exclude<JobState, 'started'> | 'running' | 'unfinished';

const JOB_HEAD = ['job', 'state', 'last run', 'took', 'instance', 'attempt', 'settled'];
const RUN_HEAD = ['scheduled', 'outcome', 'started', 'took', 'instance', 'attempt', 'error'];

export function jobRow(standing: JobStanding): string[] {
  const { name, isSettled } = standing;
  const { scheduledFor, instance, attempt, ...last } = lastOf(standing.record);
  return [
    ...[nameOf(name), stateOf(standing), momentOf(scheduledFor), took(last), plain(instance)],
    ...[String(attempt), isSettled ? 'yes' : 'no'],
  ];
}

export function runRows(standing: JobStanding): string[][] {
  const { record } = standing;
  const runs = record.runs.map((run) => runRow(run, run.outcome));
  return record.state === 'started' ? [runRow(lastOf(record), stateOf(standing)), ...runs] : runs;
}

// For programs: moments as ISO strings, durations in milliseconds.
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

function stateOf({ record: { state }, isHeld }: Pick<JobStanding, 'record' | 'isHeld'>): JobStandingState {
  if (state !== 'started') return state;
  return isHeld ? 'running' : 'unfinished';
}

// The baseline of a new job has no run.
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

// `2026-11-22 03:00:00Z`, with fractions of a second only where there are any.
function momentOf(moment: number): string {
  return new Date(moment).toISOString().replace('T', ' ').replace('.000Z', 'Z');
}

type FoundRecord = Omit<JobStanding, 'isHeld'>;

interface FoundNames {
  readonly names: readonly string[];
  readonly unasked: readonly MasterReport[];
}

async function findJobs({ masters, absent, limit }: Session, keyspace: Keyspace): Promise<FoundNames> {
  const names = new Set<string>();
  const match = `${literally(keyspace.stateOf(jobResource('')))}*`;
  const take = (entries: readonly string[]): Promise<undefined> => {
    for (const entry of entries) names.add(jobOfResource(keyspace.resourceOfState(entry)) ?? '');
    return Promise.resolve(undefined);
  };
  const ends = await Promise.all(
    masters.map(async ({ name: master, operator }) => ({
      master,
      answer: await operator.scan({ match, type: 'string', limit, take }),
    })),
  );
  return { names: [...names].sort(), unasked: [...absent, ...ends.filter(({ answer }) => answer)] };
}

// As an application reads it, with the marker that the session itself does not write.
async function readJob({ redlock }: Session, name: string): Promise<FoundRecord | undefined> {
  const { value, settled } = await redlock.inspector.readState(jobResource(name));
  const record = readJobRecord(value);
  return record && { name, record, isSettled: settled };
}

interface JobsOptions {
  readonly restartGuard: boolean;
}

// Of the state in the table of jobs, and of the outcome in that of runs.
const STATE_COLUMN = 1;

export async function jobs(
  context: CommandContext,
  name: string | undefined,
  { restartGuard: readsMarkers }: JobsOptions,
): Promise<number> {
  if (name !== undefined) resolveResources('name', jobResource(name));
  try {
    return await inSession(
      context,
      (session) => (name === undefined ? showAll(session, context) : showOne(session, context, name)),
      { readsMarkers },
    );
  } catch (error) {
    if (!isLockError(error) || error.code !== 'QUORUM_UNAVAILABLE') throw error;
    context.terminal.complain(error.message);
    return 1;
  }
}

async function showAll(session: Session, context: CommandContext): Promise<number> {
  const { terminal, json, sources, settings } = context;
  const { names, unasked } = await findJobs(session, new Keyspace(settings.keyPrefix));
  const isComplete = sources.length - unasked.length >= quorumOf(sources.length);
  const standings = isComplete ? await Promise.all(names.map((name) => standingOf(session, name))) : [];
  const found = standings.filter((standing) => standing !== undefined);
  if (json) terminal.print(JSON.stringify({ jobs: found.map(jobJson), unasked }, null, 2));
  else if (isComplete) {
    if (found.length > 0) terminal.print(table(JOB_HEAD, found.map(jobRow), paintState(terminal)));
    const where = found.length > 0 ? '' : ` with a record${underPrefix(context)}`;
    terminal.print(terminal.paint('bold', `${counted(found.length, 'job')}${where}`));
  }
  complain(unasked, context);
  if (isComplete) return 0;
  terminal.complain('too few masters answer to know the records of jobs');
  return 1;
}

async function showOne(session: Session, context: CommandContext, name: string): Promise<number> {
  const { terminal, json } = context;
  const standing = await standingOf(session, name);
  complain(session.absent, context);
  if (!standing) {
    terminal.complain(`the job ${showNames([name])} has no record${underPrefix(context)}`);
    return 1;
  }
  if (json) terminal.print(JSON.stringify(jobJson(standing), null, 2));
  else showRuns(standing, terminal);
  return 0;
}

function showRuns(standing: JobStanding, terminal: Terminal): void {
  const { name, isSettled } = standing;
  const rows = runRows(standing);
  if (rows.length > 0) terminal.print(table(RUN_HEAD, rows, paintState(terminal)));
  const certainty = isSettled ? '' : ', but no majority of the masters has stored that: a newer record may exist';
  terminal.print(terminal.paint('bold', `${showNames([name])} is ${stateOf(standing)}${certainty}`));
}

async function standingOf(session: Session, name: string): Promise<JobStanding | undefined> {
  const found = await readJob(session, name);
  if (found?.record.state !== 'started') return found && { ...found, isHeld: false };
  const { state } = await session.redlock.inspector.inspect(jobResource(name));
  if (state !== 'free') return { ...found, isHeld: true };
  // The tick may have ended between the two answers: then there is another record now.
  const later = await readJob(session, name);
  const isSame = later?.record.tick === found.record.tick && later.record.attempt === found.record.attempt;
  return later && { ...later, isHeld: !isSame };
}

function complain(unasked: readonly MasterReport[], { terminal }: CommandContext): void {
  for (const { master, answer } of unasked) terminal.complain(`${master} was not asked: ${describeReply(answer)}`);
}

function underPrefix({ settings }: CommandContext): string {
  return ` with the prefix ${showNames([settings.keyPrefix])} (--prefix names another)`;
}

function paintState(terminal: Terminal): Paint {
  return (line, { row, column }) => {
    if (column !== STATE_COLUMN) return line;
    const state = row[column] ?? '';
    if (state === 'ok') return terminal.paint('green', line);
    return terminal.paint(state === 'running' || state === 'baseline' ? 'yellow' : 'red', line);
  };
}
