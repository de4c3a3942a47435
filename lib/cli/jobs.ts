import { quorumOf } from '../core/acquire/quorum-call.js';
import { describeReply, isLockError, type MasterReport } from '../core/errors.js';
import { jobResource } from '../core/jobs/job-record.js';
import { Keyspace } from '../core/keyspace.js';
import { resolveResources } from '../core/settings/resources.js';
import { showNames } from '../core/display.js';
import type { Context } from './context.js';
import { findJobs, type JobKeys, readJob } from './job-entries.js';
import { JOB_HEAD, jobJson, jobRow, type JobStanding, RUN_HEAD, runRows, stateOf } from './job-rows.js';
import { inSession, type Session } from './session.js';
import { type Paint, table } from './table.js';
import type { Terminal } from './terminal.js';

/** Options of the command `jobs`. */
export interface JobsOptions {
  readonly restartGuard: boolean;
}

/** Column of the state in the table of jobs, and of the outcome in that of runs. */
const STATE_COLUMN = 1;

/**
 * Shows the last run of each job, or the last runs of one. Resolves with the exit status: 1 if too few masters answered, or
 * if the job that was named has no record.
 */
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
