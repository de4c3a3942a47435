/** How a recorded attempt went. */
export type JobOutcome =
  /** The method returned. */
  | 'ok'
  /** The method ended with an error. */
  | 'failed'
  /** No end was recorded: the instance crashed, lost its lock, or handed the job on at its shutdown. */
  | 'unfinished'
  /** Like `unfinished`, and not run again, because the job has `recover: false`. */
  | 'abandoned'
  /** The masters had lost the record, so that the tick may have run or not. It is not run again. */
  | 'unknown';

/** Why a tick does not run. */
export type JobSkipReason =
  /** Another instance has run the tick. */
  | 'finished'
  /** An earlier tick still ran when this one came due. */
  | 'overlap'
  /** A later tick took its place before this instance had the lock. */
  | 'superseded'
  /** This instance noticed the tick too late, for example because its machine was suspended. */
  | 'late'
  /** The tick was started and not ended, and the job has `recover: false`. */
  | 'abandoned'
  /** The masters have lost the record of the tick, so that it may have run already. */
  | 'unknown'
  /** The job had no record, and the tick was due before its first. */
  | 'baseline';

// In words that follow `does not run here: `.
export const SKIP_WORDS: Readonly<Record<JobSkipReason, string>> = {
  finished: 'another instance has run it',
  overlap: 'an earlier tick still ran when it came due',
  superseded: 'a later tick took its place',
  late: 'this instance noticed it too late',
  abandoned: 'it was started and not ended, and `recover` is false',
  unknown: 'the masters have lost its record, so that it may have run',
  baseline: 'the job had no record yet, and it was due earlier',
};

// `baseline`: the job had no record, and this tick was too old to run.
export type JobState = 'started' | 'ok' | 'failed' | 'abandoned' | 'unknown' | 'baseline';

// Times are in milliseconds since the epoch, by the clock of the instance that wrote them.
export interface RecordedRun {
  readonly scheduledFor: number;
  readonly startedAt?: number;
  readonly endedAt?: number;
  readonly instance: string;
  readonly attempt: number;
  readonly outcome: JobOutcome;
  readonly error?: string;
}

export interface JobRecord {
  // Nominal time of the last tick.
  readonly tick: number;
  // How often the tick was started, at most; `0` if it was not.
  readonly attempt: number;
  // The instance that wrote the record.
  readonly holder: string;
  // The method and the schedule for which it was written; absent in records of older versions.
  readonly declared?: string;
  readonly state: JobState;
  // When the record was written, by the clock of that instance.
  readonly at: number;
  // When the first attempt at the tick began; absent if none did, and in records of older versions.
  readonly firstStart?: number;
  // Newest first.
  readonly runs: readonly RecordedRun[];
}

interface Writing {
  readonly holder: string;
  readonly declared?: string;
  readonly at: number;
}

const MAX_RUNS = 20;
// Of the history as JSON in UTF-8: half of what a state may have.
const MAX_BYTES = 8_192;
// In characters.
const LONGEST_ERROR = 200;
const RESOURCE = 'job:';
const STATES: readonly unknown[] = ['started', 'ok', 'failed', 'abandoned', 'unknown', 'baseline'] satisfies JobState[];

export function jobResource(name: string): string {
  return RESOURCE + name;
}

// `undefined` if no job has the resource.
export function jobOfResource(resource: string): string | undefined {
  return resource.startsWith(RESOURCE) ? resource.slice(RESOURCE.length) : undefined;
}

// `undefined` if the value is something else.
export function readJobRecord(value: unknown): JobRecord | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { tick, attempt, holder, state, at, runs } = value as Partial<Record<keyof JobRecord, unknown>>;
  const isRecord =
    [tick, attempt, at].every((number) => Number.isFinite(number)) &&
    typeof holder === 'string' &&
    STATES.includes(state) &&
    Array.isArray(runs);
  return isRecord ? (value as JobRecord) : undefined;
}

export function lastFinished(record: JobRecord | undefined): RecordedRun | undefined {
  return record?.runs.find(({ outcome }) => outcome === 'ok' || outcome === 'failed');
}

// Only if it is still in the history.
export function lastSuccess(record: JobRecord | undefined): RecordedRun | undefined {
  return record?.runs.find(({ outcome }) => outcome === 'ok');
}

export function startRecord(
  last: JobRecord | undefined,
  { tick, attempt }: Pick<JobRecord, 'tick' | 'attempt'>,
  writing: Writing,
): JobRecord {
  const runs = last?.state === 'started' ? [attemptOf(last, 'unfinished'), ...last.runs] : (last?.runs ?? []);
  const isAgain = last?.tick === tick;
  const firstStart = isAgain ? Math.min(firstStartOf(last), writing.at) : writing.at;
  return { tick, attempt, state: 'started', ...writing, firstStart, runs: bounded(runs) };
}

// `Infinity` if no attempt began. The history has the attempts of older versions, which do not write it down, and the
// record those that the history has no room for.
export function firstStartOf({ tick, state, at, firstStart = Infinity, runs }: JobRecord): number {
  const starts = runs.flatMap(({ scheduledFor, startedAt }) => (scheduledFor === tick ? [startedAt ?? Infinity] : []));
  return Math.min(firstStart, ...starts, state === 'started' ? at : Infinity);
}

export function endRecord(started: JobRecord, writing: Writing, failure?: { readonly message: string }): JobRecord {
  const state = failure ? 'failed' : 'ok';
  const run: RecordedRun = {
    ...attemptOf(started, state),
    endedAt: writing.at,
    ...(failure && { error: failure.message.slice(0, LONGEST_ERROR).toWellFormed() }),
  };
  return { ...started, state, ...writing, runs: bounded([run, ...started.runs]) };
}

export function markRecord(
  last: JobRecord | undefined,
  { tick, state }: { readonly tick: number; readonly state: 'abandoned' | 'unknown' | 'baseline' },
  writing: Writing,
): JobRecord {
  const started = last?.state === 'started' ? last : undefined;
  const attempt = started?.tick === tick ? started.attempt : 0;
  const record = { tick, attempt, state, ...writing };
  if (state === 'baseline') return { ...record, runs: last?.runs ?? [] };
  const runs = [...(started ? [attemptOf(started, state)] : []), ...(last?.runs ?? [])];
  const isNew = started?.tick !== tick;
  const marked: RecordedRun = { scheduledFor: tick, instance: writing.holder, attempt, outcome: state };
  return { ...record, runs: bounded(isNew ? [marked, ...runs] : runs) };
}

function attemptOf({ tick, at, holder, attempt }: JobRecord, outcome: JobOutcome): RecordedRun {
  return { scheduledFor: tick, startedAt: at, instance: holder, attempt, outcome };
}

function bounded(runs: readonly RecordedRun[]): readonly RecordedRun[] {
  const kept: RecordedRun[] = [];
  const encoder = new TextEncoder();
  let size = 0;
  for (const run of runs.slice(0, MAX_RUNS)) {
    size += encoder.encode(JSON.stringify(run)).length;
    if (size > MAX_BYTES) break;
    kept.push(run);
  }
  return kept;
}
