import { firstStartOf, type JobRecord, type JobState } from './job-record.js';

// Moments are in milliseconds since the Unix epoch.
export interface JobSchedule {
  next(after: number): number;
  // At or before the moment.
  last(until: number): number;
}

// In milliseconds: the clocks of two instances may differ by this much at most, however long the period is.
const MAX_TOLERANCE = 60_000;

// How many milliseconds before its nominal time a tick may start: at most half the time since the tick before it, so
// that neighbouring ticks are never confused.
export function toleranceOf(schedule: JobSchedule, tick: number): number {
  return Math.min((tick - schedule.last(tick - 1)) / 2, MAX_TOLERANCE);
}

export interface JobPolicy {
  // A tick that was started and not ended runs again.
  readonly recover: boolean;
  // The last tick that was missed runs.
  readonly catchUp: boolean;
  // For a tick that comes due while an earlier one runs.
  readonly overlap: 'skip' | 'queue';
}

export interface JobSituation {
  readonly record: JobRecord | undefined;
  // If false, masters have lost their data, and a newer record may be gone.
  readonly isCertain: boolean;
  // When the newest data of a master that has lost data began, by the clocks of the masters; `undefined` if none has.
  readonly bornAt: number | undefined;
  // By the clocks of the masters.
  readonly time: number;
  // The newest tick that came due on this instance; `undefined` if none did.
  readonly due: number | undefined;
}

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

export type JobDecision =
  | { readonly action: 'run'; readonly tick: number; readonly attempt: number }
  // Stores that the tick is not run, and decides again.
  | { readonly action: 'mark'; readonly tick: number; readonly state: 'abandoned' | 'unknown' | 'baseline' }
  | { readonly action: 'skip'; readonly tick: number; readonly reason: JobSkipReason }
  // The tick may not start before `until`, by the clocks of the masters.
  | { readonly action: 'wait'; readonly tick: number; readonly until: number }
  | { readonly action: 'rest' };

const REASONS: Readonly<Record<JobState, JobSkipReason>> = {
  // A started tick is run again or marked before any other is considered.
  started: 'finished',
  ok: 'finished',
  failed: 'finished',
  abandoned: 'abandoned',
  unknown: 'unknown',
  baseline: 'baseline',
};

// Asked again after each step.
export function decideJob(situation: JobSituation, schedule: JobSchedule, policy: JobPolicy): JobDecision {
  const decision = decideTick(situation, schedule, policy);
  // The next record that is stored is certain, also if another instance stores it: it must cover these ticks.
  const forgotten = lastForgotten(situation, schedule);
  const isCovered =
    (decision.action === 'run' || decision.action === 'mark') && decision.tick >= (forgotten ?? -Infinity);
  return forgotten === undefined || isCovered ? decision : { action: 'mark', tick: forgotten, state: 'unknown' };
}

function decideTick(situation: JobSituation, schedule: JobSchedule, policy: JobPolicy): JobDecision {
  const { record, time, due } = situation;
  // The holder of the lock knows that the runner of a started tick is gone.
  if (record?.state === 'started') return resumeTick(situation, record, schedule, policy); // @mutant started-tick-comes-first
  const isOpen = due !== undefined && (record === undefined || due > record.tick);
  const earliest = isOpen ? due - toleranceOf(schedule, due) : -Infinity;
  const isEarly = earliest > time; // @mutant early-ticks-wait
  const missed = policy.catchUp ? schedule.last(time) : undefined;
  const candidate = latest(isEarly ? undefined : due, missed);
  const isPending = candidate !== undefined && (record === undefined || candidate > record.tick); // @mutant finished-ticks-stay-finished
  const decision = isPending ? startTick(situation, candidate, schedule, policy) : undefined;
  if (isOpen && isEarly && decision?.action !== 'run' && decision?.action !== 'mark') {
    // One instance whose clock is a day ahead would otherwise finish the ticks of a day before they are due.
    return { action: 'wait', tick: due, until: earliest };
  }
  if (decision) return decision;
  if (due === undefined || record === undefined) return { action: 'rest' };
  return { action: 'skip', tick: due, reason: due === record.tick ? REASONS[record.state] : 'superseded' };
}

function resumeTick(
  situation: JobSituation,
  { tick, attempt }: JobRecord,
  schedule: JobSchedule,
  { recover }: JobPolicy,
): JobDecision {
  if (mayBeForgotten(situation, tick, schedule)) return { action: 'mark', tick, state: 'unknown' };
  // Protocol 14.4
  return recover ? { action: 'run', tick, attempt: attempt + 1 } : { action: 'mark', tick, state: 'abandoned' }; // @mutant every-start-is-counted
}

// The tick is later than the recorded one, which is finished.
function startTick(situation: JobSituation, tick: number, schedule: JobSchedule, { overlap }: JobPolicy): JobDecision {
  const { record, time, due } = situation;
  if (mayBeForgotten(situation, tick, schedule)) return { action: 'mark', tick, state: 'unknown' };
  const isOld = tick !== due && tick <= time - toleranceOf(schedule, tick);
  if (record === undefined && isOld) return { action: 'mark', tick, state: 'baseline' }; // @mutant new-job-stores-a-baseline
  // Protocol 14.5
  if (overlap === 'skip' && record && wasRunningAt(record, tick)) return { action: 'skip', tick, reason: 'overlap' };
  return { action: 'run', tick, attempt: 1 };
}

// The tick may have run in a time from which the record is lost.
function mayBeForgotten({ isCertain, bornAt, time }: JobSituation, tick: number, schedule: JobSchedule): boolean {
  // Protocol 14.6
  return !isCertain && tick <= (bornAt ?? time) + toleranceOf(schedule, tick);
}

// `undefined` if the record says that the tick does not run again.
function lastForgotten(situation: JobSituation, schedule: JobSchedule): number | undefined {
  const { isCertain, record, bornAt, time } = situation;
  if (isCertain) return undefined; // @mutant uncertain-record-is-marked
  const following = schedule.next(bornAt ?? time);
  const tick = mayBeForgotten(situation, following, schedule) ? following : schedule.last(bornAt ?? time);
  return record && tick <= record.tick ? undefined : tick;
}

// The recorded tick had begun at that moment, with whichever attempt, and its end was still to come.
function wasRunningAt(record: JobRecord, moment: number): boolean {
  const [last] = record.runs;
  const { scheduledFor, endedAt = -Infinity } = last ?? {};
  return scheduledFor === record.tick && firstStartOf(record) < moment && moment < endedAt;
}

function latest(...ticks: readonly (number | undefined)[]): number | undefined {
  return ticks.reduce((a, b) => (a === undefined || (b !== undefined && b > a) ? b : a), undefined);
}

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
