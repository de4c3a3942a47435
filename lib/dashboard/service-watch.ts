import type { JobOutcome, JobReport, JobRunReport, LockService, MasterStatus, RedlockStatus } from '../index.js';
import { display, type inspections, jobRecords, logTo, quorumWithin } from '../internal.js';
import type { LoggerService } from '@nestjs/common';
import { randomUUID } from 'node:crypto';

// In milliseconds: records are read at most once in this time, however many pages are open.
const READ_INTERVAL = 2_000;
const MAX_RUNS = 5;

// What the module of the jobs provides.
export interface JobOverview extends JobReport {
  // Why its record cannot be read.
  readonly problem?: string;
}

// Times are in milliseconds since the Unix epoch.
export interface JobView {
  readonly name: string;
  // `null` is the service without a name.
  readonly service: string | null;
  // The cron expression with its time zone, or the period.
  readonly schedule: string;
  readonly next: number;
  // Started, and its end is not recorded.
  readonly current?: JobRunView;
  // Newest first.
  readonly runs: readonly JobRunView[];
  // A majority of the masters has stored all this.
  readonly isSettled: boolean;
  // The last tick that this instance did not run.
  readonly lastSkip?: { readonly scheduledFor: number; readonly reason: string };
  // Why the record cannot be read now.
  readonly problem?: string;
}

interface JobRunView {
  readonly scheduledFor: number;
  // `started` for the current one.
  readonly outcome: JobOutcome | 'started';
  readonly instance: string;
  readonly attempt: number;
  // In milliseconds.
  readonly taken?: number;
  readonly error?: string;
}

// `reports` are absent without the module of jobs.
export function watchJobs(reports: { overview(): Promise<readonly JobOverview[]> } | undefined) {
  return atMostEvery(READ_INTERVAL, async () => (reports ? (await reports.overview()).map(viewOf) : []));
}

function atMostEvery<T>(interval: number, ask: () => Promise<T>): (now?: number) => Promise<T> {
  let seen: { readonly at: number; readonly answer: Promise<T> } | undefined;
  return (now = performance.now()) => {
    if (!seen || now - seen.at >= interval) seen = { at: now, answer: ask() };
    return seen.answer;
  };
}

function viewOf(overview: JobOverview): JobView {
  const { name, service, next, current, runs, lastSkip, isSettled, problem } = overview;
  return {
    ...{ name, service: service ?? null, schedule: scheduleOf(overview), next: next.getTime(), isSettled },
    ...(current && { current: currentOf(current) }),
    runs: runs.slice(0, MAX_RUNS).map(runOf),
    ...(lastSkip && {
      lastSkip: { scheduledFor: lastSkip.scheduledFor.getTime(), reason: jobRecords.SKIP_WORDS[lastSkip.reason] },
    }),
    ...(problem !== undefined && { problem }),
  };
}

function currentOf({ scheduledFor, instance, attempt }: NonNullable<JobOverview['current']>): JobRunView {
  return { scheduledFor: scheduledFor.getTime(), outcome: 'started', instance, attempt };
}

function scheduleOf({ schedule, timeZone }: Pick<JobOverview, 'schedule' | 'timeZone'>): string {
  const text = typeof schedule === 'number' ? display.duration(schedule) : schedule;
  return timeZone === undefined ? text : `${text} (${timeZone})`;
}

function runOf({ scheduledFor, startedAt, endedAt, instance, attempt, outcome, error }: JobRunReport): JobRunView {
  return {
    ...{ scheduledFor: scheduledFor.getTime(), outcome, instance, attempt },
    ...(startedAt && endedAt && { taken: Math.max(0, endedAt.getTime() - startedAt.getTime()) }),
    ...(error !== undefined && { error }),
  };
}

interface Availability {
  readonly reason: string;
  // Milliseconds until locks can be taken again at the latest; absent while they can, and if no time is known.
  readonly opensIn?: number;
}

const STATES: Readonly<Record<MasterStatus['state'], string>> = {
  voting: 'votes',
  quarantined: 'is quarantined',
  silent: 'is silent',
  down: 'is down',
  refused: 'is refused',
};

export function availabilityOf(status: RedlockStatus): Availability {
  const { masters, quorum, canVote } = status;
  const others = masters.filter(({ state }) => state !== 'voting');
  const voting = masters.length - others.length;
  const votes = display.votesOf(voting, masters.length);
  if (others.length === 0) return { reason: `${votes}.` };
  const problems = others.map(
    ({ master, state, reason }) => `${master} ${STATES[state]}${reason ? `: ${reason}` : ''}`,
  );
  if (canVote) {
    const margin = voting === quorum ? ' No other master may fail.' : '';
    return { reason: `${votes}.${margin} ${problems.join('. ')}.` };
  }
  const opensIn = quorumWithin(status);
  return {
    reason: `${votes}, ${quorum} ${quorum === 1 ? 'is' : 'are'} needed. ${problems.join('. ')}.`,
    ...(opensIn !== undefined && { opensIn }),
  };
}

// `good` and `bad` concern masters and quorums, `lost` a lock, `action` a user.
type EventKind = 'good' | 'warning' | 'bad' | 'lost' | 'action';

interface DashboardEvent {
  readonly id: number;
  // Milliseconds since the Unix epoch.
  readonly at: number;
  readonly kind: EventKind;
  // `null` is the service without a name.
  readonly service: string | null;
  readonly text: string;
}

const KEPT = 200;

export class EventLog {
  // Numbers of events in the logs of other instances and of an earlier run mean other events.
  readonly id = randomUUID();
  private readonly events: DashboardEvent[] = [];
  private count = 0;

  add(service: string | null, kind: EventKind, text: string): void {
    this.events.push({ id: ++this.count, at: Date.now(), kind, service, text });
    if (this.events.length > KEPT) this.events.shift();
  }

  after(id: number): readonly DashboardEvent[] {
    return this.events.filter((event) => event.id > id);
  }
}

// In milliseconds: masters are asked at most once in this time, however many pages are open.
const PROBE_INTERVAL = 1_000;
const MAX_LISTED = 100;

export class ServiceWatch {
  readonly status = atMostEvery(PROBE_INTERVAL, () => this.locks.probe());

  // `name` is `null` for the service without a name.
  constructor(
    readonly name: string | null,
    readonly locks: LockService,
    private readonly events: EventLog,
  ) {}

  // By `enabled: false`.
  get isOff(): boolean {
    return !this.locks.excludes;
  }

  begin(): void {
    const { events, name } = this;
    const lines: LoggerService = {
      log: (text: string) => events.add(name, 'good', text),
      warn: (text: string) => events.add(name, 'warning', text),
      error: (text: string) => events.add(name, 'bad', text),
    };
    const observer = {
      ...logTo(lines, this.locks.environment.clock),
      lockLost: (error: Error): void => events.add(name, 'lost', error.message),
      elections: {
        elected: (election: string, term: number): void =>
          events.add(name, 'good', `this instance leads "${election}" in term ${term}`),
        overrun: (election: string, term: number): void =>
          events.add(name, 'bad', `the method of "${election}" goes on without leading since term ${term}`),
      },
    };
    this.locks.observe(observer);
  }

  // What this process holds and waits for, however it began before the watch.
  get own(): { readonly held: inspections.OwnLocks; readonly waiting: inspections.OwnLocks } {
    return this.locks.ownLocks(MAX_LISTED);
  }
}
