import { duration, showNames } from '../core/display.js';
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
import type { MasterReply } from '../core/master.interface.js';
import { snapshotOf } from '../core/state/state-register.js';
import { runStateRequest } from '../redis/redis-state.js';
import { type Failure, isFailure, type LockContact } from './contact.js';
import { answerOf, type Context, inSession, type Session } from './session.js';
import { quorumOf } from '../core/acquire/quorum-call.js';
import { resolveResources } from '../core/settings/resources.js';

export interface JobStanding {
  readonly name: string;
  readonly record: JobRecord;
  // A majority of the masters has stored the record.
  readonly isSettled: boolean;
  // The lock of the job is held, so that a started tick still runs.
  readonly isHeld: boolean;
}

// `unfinished`: the tick was started, and its instance has the lock no more.
type JobStandingState = Exclude<JobState, 'started'> | 'running' | 'unfinished';

export const JOB_HEAD = ['job', 'state', 'last run', 'took', 'instance', 'attempt', 'settled'];
export const RUN_HEAD = ['scheduled', 'outcome', 'started', 'took', 'instance', 'attempt', 'error'];

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

interface JobKeys {
  readonly keyspace: Keyspace;
  // The applications mark the data of masters.
  readonly isGuarded: boolean;
}

interface FoundRecord {
  readonly name: string;
  readonly record: JobRecord;
  readonly isSettled: boolean;
}

interface FoundNames {
  readonly names: readonly string[];
  readonly unasked: readonly MasterReport[];
}

async function findJobs({ members, absent }: Session, keyspace: Keyspace): Promise<FoundNames> {
  const scans = await Promise.all(
    members.map(async ({ contact }) => ({ master: contact.name, found: await scan(contact, keyspace) })),
  );
  const failed = scans.flatMap(({ master, found }) => ('code' in found ? [{ master, answer: answerOf(found) }] : []));
  const names = scans.flatMap(({ found }) => ('code' in found ? [] : found));
  return { names: [...new Set(names)].sort(), unasked: [...absent, ...failed] };
}

async function readJob({ members, absent }: Session, name: string, keys: JobKeys): Promise<FoundRecord | undefined> {
  const resource = jobResource(name);
  const answers = await Promise.all(
    members.map(async ({ contact }): Promise<MasterReport> => ({
      master: contact.name,
      answer: await readEntryOf(contact, resource, keys),
    })),
  );
  const { value, settled } = snapshotOf(resource, [...answers, ...absent]);
  const record = readJobRecord(value);
  return record && { name, record, isSettled: settled };
}

async function scan(contact: LockContact, keyspace: Keyspace): Promise<readonly string[] | Failure> {
  const names: string[] = [];
  const failure = await contact.scan(
    `${literally(keyspace.stateOf(jobResource('')))}*`,
    (entries) => {
      names.push(...entries.map((entry) => jobOfResource(keyspace.resourceOfState(entry)) ?? ''));
      return Promise.resolve(undefined);
    },
    'string',
  );
  return failure ?? names;
}

// As an application asks, with the marker that the session itself does not use, because it must write none.
async function readEntryOf(
  contact: LockContact,
  resource: string,
  { keyspace, isGuarded }: JobKeys,
): Promise<MasterReply> {
  const place = contact.at(keyspace.keyOf(resource));
  const entry = place.stored(keyspace.stateOf(resource));
  const request = { op: 'read-state', keys: [place.stored(keyspace.keyOf(resource))], entry } as const;
  const server = { marker: isGuarded ? place.marker : '', run: '', replid: '' };
  let failure: Failure | undefined;
  const answer = await runStateRequest(request, server, async (script, args) => {
    const outcome = await place.call('EVAL', script, 2, place.marker, entry, ...args);
    if (!isFailure(outcome)) return outcome.value;
    failure = outcome;
    return [];
  });
  return failure ? answerOf(failure) : answer;
}

export interface JobsOptions {
  readonly restartGuard: boolean;
}

// Of the state in the table of jobs, and of the outcome in that of runs.
const STATE_COLUMN = 1;

export async function jobs(
  context: Context,
  name: string | undefined,
  { restartGuard: isGuarded }: JobsOptions,
): Promise<number> {
  const keys = { keyspace: new Keyspace(context.settings.keyPrefix), isGuarded };
  if (name !== undefined) resolveResources('name', jobResource(name));
  try {
    return await inSession(context, (session) =>
      name === undefined ? showAll(session, context, keys) : showOne(session, context, { name, keys }),
    );
  } catch (error) {
    if (!isLockError(error) || error.code !== 'QUORUM_UNAVAILABLE') throw error;
    context.terminal.complain(error.message);
    return 1;
  }
}

async function showAll(session: Session, context: Context, keys: JobKeys): Promise<number> {
  const { terminal, json, sources } = context;
  const { names, unasked } = await findJobs(session, keys.keyspace);
  const isComplete = sources.length - unasked.length >= quorumOf(sources.length);
  const standings = isComplete ? await Promise.all(names.map((name) => standingOf(session, name, keys))) : [];
  const found = standings.filter((standing) => standing !== undefined);
  if (json) terminal.print(JSON.stringify({ jobs: found.map(jobJson), unasked }, null, 2));
  else if (isComplete) {
    if (found.length > 0) terminal.print(table(JOB_HEAD, found.map(jobRow), paintState(terminal)));
    const where = found.length > 0 ? '' : ` with a record${underPrefix(context)}`;
    terminal.print(terminal.paint('bold', `${found.length} ${found.length === 1 ? 'job' : 'jobs'}${where}`));
  }
  complain(unasked, context);
  if (isComplete) return 0;
  terminal.complain('too few masters answer to know the records of jobs');
  return 1;
}

async function showOne(
  session: Session,
  context: Context,
  { name, keys }: { readonly name: string; readonly keys: JobKeys },
): Promise<number> {
  const { terminal, json } = context;
  const standing = await standingOf(session, name, keys);
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

async function standingOf(session: Session, name: string, keys: JobKeys): Promise<JobStanding | undefined> {
  const found = await readJob(session, name, keys);
  if (found?.record.state !== 'started') return found && { ...found, isHeld: false };
  const { state } = await session.redlock.inspector.inspect(jobResource(name));
  if (state !== 'free') return { ...found, isHeld: true };
  // The tick may have ended between the two answers: then there is another record now.
  const later = await readJob(session, name, keys);
  const isSame = later?.record.tick === found.record.tick && later.record.attempt === found.record.attempt;
  return later && { ...later, isHeld: !isSame };
}

function complain(unasked: readonly MasterReport[], { terminal }: Context): void {
  for (const { master, answer } of unasked) terminal.complain(`${master} was not asked: ${describeReply(answer)}`);
}

function underPrefix({ settings }: Context): string {
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
