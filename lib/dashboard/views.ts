import type { ResourceContention } from '../core/contention/contention.js';
import { votesOf } from '../core/display.js';
import type { MasterStatus, RedlockStatus } from '../core/health/status.js';
import { randomUUID } from 'node:crypto';
import type { JobOutcome } from '../core/jobs/job-record.js';
import type { LockInspection, OwnLocks, SlotInspection } from '../core/operator/inspector.js';

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

export function availabilityOf({ masters, quorum, canVote }: RedlockStatus): Availability {
  const others = masters.filter(({ state }) => state !== 'voting');
  const voting = masters.length - others.length;
  const votes = votesOf(voting, masters.length);
  if (others.length === 0) return { reason: `${votes}.` };
  const problems = others.map(
    ({ master, state, reason }) => `${master} ${STATES[state]}${reason ? `: ${reason}` : ''}`,
  );
  if (canVote) {
    const margin = voting === quorum ? ' No other master may fail.' : '';
    return { reason: `${votes}.${margin} ${problems.join('. ')}.` };
  }
  const missing = quorum - voting;
  const ends = others.flatMap(({ remaining }) => remaining ?? []).sort((a, b) => a - b);
  const opensIn = ends[missing - 1];
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

export interface StateView {
  // Milliseconds since the Unix epoch.
  readonly at: number;
  readonly instance: string;
  readonly actions: boolean;
  readonly log: string;
  // Those that the page does not have yet, the oldest first.
  readonly events: readonly DashboardEvent[];
  readonly services: readonly ServiceView[];
  readonly jobs: readonly JobView[];
}

export interface ServiceView extends RedlockStatus, Availability {
  // `null` for the service without a name.
  readonly name: string | null;
  // Locking is off: there are no masters and no locks.
  readonly isOff: boolean;
  readonly held: OwnLocks;
  readonly waiting: OwnLocks;
  // The kinds of resources for which calls of this instance have waited longest.
  readonly contention: readonly ResourceContention[];
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

export interface JobRunView {
  readonly scheduledFor: number;
  // `started` for the current one.
  readonly outcome: JobOutcome | 'started';
  readonly instance: string;
  readonly attempt: number;
  // In milliseconds.
  readonly taken?: number;
  readonly error?: string;
}

export interface HolderView {
  readonly instance: string;
  // Milliseconds since the Unix epoch.
  readonly since: number;
}

export interface PermitView extends Pick<SlotInspection, 'slot' | 'state' | 'remaining'> {
  readonly holder?: HolderView;
}

export interface InspectionView extends Omit<LockInspection, 'masters' | 'holder'> {
  // Absent for a lock.
  readonly slot?: number;
  readonly at: number;
  readonly masters: readonly { readonly master: string; readonly kind: string; readonly text: string }[];
  readonly holder?: HolderView;
  // Of the leader of an election, as its state has it.
  readonly term?: number;
  // They do not exclude the lock of that name. Absent without any, and for a permit.
  readonly permits?: { readonly waiting: number; readonly slots: readonly PermitView[] };
  // Identifies the holder that was found, without its token. Absent if there is nothing to release.
  readonly ticket?: string;
  // Released by force, and its keys have not expired yet.
  readonly revoked?: boolean;
}
