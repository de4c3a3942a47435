import type { JobSkipReason } from '../index.js';
import { jobRecords } from '../internal.js';

// Moments are in milliseconds since the Unix epoch.
export interface JobSchedule {
  next(after: number): number;
  // At or before the moment.
  last(until: number): number;
}

// In milliseconds: the clocks of two instances may differ by this much at most, however long the period is.
const MAX_TOLERANCE = 60_000;

// How many milliseconds late a tick may be noticed, and how far the clock that notices it may be wrong: at most half the
// time since the tick before it, so that neighbouring ticks are never confused.
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
  readonly record: jobRecords.JobRecord | undefined;
  // If so many masters have lost their data that a newer record may be gone: since when the newest of them votes.
  readonly since: number | undefined;
  // By the clock of this instance.
  readonly time: number;
  // The newest tick that came due on this instance; `undefined` if none did.
  readonly due: number | undefined;
}

export type JobDecision =
  | { readonly action: 'run'; readonly tick: number; readonly attempt: number }
  // Stores that the tick is not run, and decides again.
  | { readonly action: 'mark'; readonly tick: number; readonly state: 'abandoned' | 'unknown' | 'baseline' }
  | { readonly action: 'skip'; readonly tick: number; readonly reason: JobSkipReason }
  | { readonly action: 'rest' };

const REASONS: Readonly<Record<jobRecords.JobState, JobSkipReason>> = {
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
  if (forgotten === undefined || isCovered) return decision;
  // Without any record, this is most likely a new job.
  return { action: 'mark', tick: forgotten, state: situation.record ? 'unknown' : 'baseline' };
}

function decideTick(situation: JobSituation, schedule: JobSchedule, policy: JobPolicy): JobDecision {
  const { record, time, due } = situation;
  // The holder of the lock knows that the runner of a started tick is gone.
  if (record?.state === 'started') return resumeTick(situation, record, schedule, policy); // @mutant started-tick-comes-first
  const missed = policy.catchUp ? schedule.last(time) : undefined;
  const candidate = latest(due, missed);
  const isPending = candidate !== undefined && (record === undefined || candidate > record.tick); // @mutant finished-ticks-stay-finished
  if (isPending) return startTick(situation, candidate, schedule, policy);
  if (due === undefined || record === undefined) return { action: 'rest' };
  return { action: 'skip', tick: due, reason: due === record.tick ? REASONS[record.state] : 'superseded' };
}

function resumeTick(
  situation: JobSituation,
  { tick, attempt }: jobRecords.JobRecord,
  schedule: JobSchedule,
  { recover }: JobPolicy,
): JobDecision {
  if (mayBeForgotten(situation, tick, schedule)) return { action: 'mark', tick, state: 'unknown' };
  // Protocol 12.4
  return recover ? { action: 'run', tick, attempt: attempt + 1 } : { action: 'mark', tick, state: 'abandoned' }; // @mutant every-start-is-counted
}

// The tick is later than the recorded one, which is finished.
function startTick(situation: JobSituation, tick: number, schedule: JobSchedule, { overlap }: JobPolicy): JobDecision {
  const { record, due } = situation;
  if (mayBeForgotten(situation, tick, schedule)) return { action: 'mark', tick, state: 'unknown' };
  // It was due before the first start.
  if (record === undefined && tick !== due) return { action: 'mark', tick, state: 'baseline' }; // @mutant new-job-stores-a-baseline
  // Protocol 12.5
  if (overlap === 'skip' && record && wasRunningAt(record, tick)) return { action: 'skip', tick, reason: 'overlap' };
  return { action: 'run', tick, attempt: 1 };
}

// The tick may have run in a time from which the record is lost.
function mayBeForgotten({ since }: JobSituation, tick: number, schedule: JobSchedule): boolean {
  // Protocol 12.6
  return since !== undefined && tick <= since + toleranceOf(schedule, tick);
}

// `undefined` if the record says that the tick does not run again.
function lastForgotten(situation: JobSituation, schedule: JobSchedule): number | undefined {
  const { since, record } = situation;
  if (since === undefined) return undefined; // @mutant uncertain-record-is-marked
  const following = schedule.next(since);
  const tick = mayBeForgotten(situation, following, schedule) ? following : schedule.last(since);
  return record && tick <= record.tick ? undefined : tick;
}

// The recorded tick had begun at that moment, with whichever attempt, and its end was still to come.
function wasRunningAt(record: jobRecords.JobRecord, moment: number): boolean {
  const [last] = record.runs;
  const { scheduledFor, endedAt = -Infinity } = last ?? {};
  return scheduledFor === record.tick && jobRecords.firstStartOf(record) < moment && moment < endedAt;
}

function latest(...ticks: readonly (number | undefined)[]): number | undefined {
  return ticks.reduce((a, b) => (a === undefined || (b !== undefined && b > a) ? b : a), undefined);
}
