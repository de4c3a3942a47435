import type { MasterStatus, RedlockStatus } from '../core/health/status.js';
import { randomUUID } from 'node:crypto';
import type { JobOutcome } from '../core/jobs/job-record.js';
import type { LockInspection, OwnLocks, SlotInspection } from '../core/operator/inspector.js';

/** Whether locks can be taken now, in words. */
interface Availability {
  /** How many masters vote, how many must, and what keeps the others from it. */
  readonly reason: string;
  /** Milliseconds until locks can be taken again at the latest; absent while they can, and if no time is known. */
  readonly opensIn?: number;
}

const STATES: Readonly<Record<MasterStatus['state'], string>> = {
  voting: 'votes',
  quarantined: 'is quarantined',
  silent: 'is silent',
  down: 'is down',
  refused: 'is refused',
};

/** Describes whether locks can be taken and, if not, why not and until when at the latest. */
export function availabilityOf({ masters, quorum, canVote }: RedlockStatus): Availability {
  const others = masters.filter(({ state }) => state !== 'voting');
  const voting = masters.length - others.length;
  const votes = `${voting} of ${masters.length} ${masters.length === 1 ? 'master votes' : 'masters vote'}`;
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

/** How an event looks: `good` and `bad` concern masters and quorums, `lost` a lock, `action` a user. */
type EventKind = 'good' | 'warning' | 'bad' | 'lost' | 'action';

/** An event to show. */
interface DashboardEvent {
  readonly id: number;
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  readonly kind: EventKind;
  /** The lock service; `null` is the one without a name. */
  readonly service: string | null;
  readonly text: string;
}

/** Number of events that are kept. */
const KEPT = 200;

/** The latest events of this process. */
export class EventLog {
  /** Distinguishes this log from those of other instances and of an earlier run: their numbers mean other events. */
  readonly id = randomUUID();
  private readonly events: DashboardEvent[] = [];
  private count = 0;

  add(service: string | null, kind: EventKind, text: string): void {
    this.events.push({ id: ++this.count, at: Date.now(), kind, service, text });
    if (this.events.length > KEPT) this.events.shift();
  }

  /** The events with a larger number than `id`, the oldest first. */
  after(id: number): readonly DashboardEvent[] {
    return this.events.filter((event) => event.id > id);
  }
}

/** Everything that the page shows at one moment. */
export interface StateView {
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  /** The process that answers. */
  readonly instance: string;
  readonly actions: boolean;
  /** Identifies the log that the events belong to. */
  readonly log: string;
  /** The events that the page does not have yet, the oldest first. */
  readonly events: readonly DashboardEvent[];
  readonly services: readonly ServiceView[];
  /** Empty if the application has no jobs. */
  readonly jobs: readonly JobView[];
}

/** One lock service. */
export interface ServiceView extends RedlockStatus, Availability {
  /** `null` for the service without a name. */
  readonly name: string | null;
  /** Whether locking is off, so that there are no masters and no locks. */
  readonly isOff: boolean;
  readonly held: OwnLocks;
  readonly waiting: OwnLocks;
}

/** A scheduled job. Times are in milliseconds since the Unix epoch. */
export interface JobView {
  readonly name: string;
  /** The lock service; `null` is the one without a name. */
  readonly service: string | null;
  /** The cron expression with its time zone, or the period. */
  readonly schedule: string;
  readonly next: number;
  /** The attempt that was started, and whose end is not recorded. */
  readonly current?: JobRunView;
  /** The last attempts, newest first. */
  readonly runs: readonly JobRunView[];
  /** Whether a majority of the masters has stored all this. */
  readonly isSettled: boolean;
  /** The last tick that this instance did not run, and why. */
  readonly lastSkip?: { readonly scheduledFor: number; readonly reason: string };
  /** Why the record cannot be read now. */
  readonly problem?: string;
}

/** One attempt of a job. */
export interface JobRunView {
  readonly scheduledFor: number;
  /** `started` for the current one. */
  readonly outcome: JobOutcome | 'started';
  readonly instance: string;
  readonly attempt: number;
  /** From its start to its end. */
  readonly taken?: number;
  readonly error?: string;
}

/** The holder of a lock or a permit. */
export interface HolderView {
  readonly instance: string;
  /** Milliseconds since the Unix epoch. */
  readonly since: number;
}

/** One permit that is held. */
export interface PermitView extends Pick<SlotInspection, 'slot' | 'state' | 'remaining'> {
  readonly holder?: HolderView;
}

/** One resource, or one of its permits. */
export interface InspectionView extends Omit<LockInspection, 'masters' | 'holder'> {
  /** The slot of the permit; absent for a lock. */
  readonly slot?: number;
  readonly at: number;
  /** The reply of each master, in words. */
  readonly masters: readonly { readonly master: string; readonly kind: string; readonly text: string }[];
  readonly holder?: HolderView;
  /** The permits of the name that are held, which do not exclude its lock; absent without any, and for a permit. */
  readonly permits?: { readonly waiting: number; readonly slots: readonly PermitView[] };
  /** Identifies the holder that was found, without its token. Absent if there is nothing to release. */
  readonly ticket?: string;
  /** Whether the lock was released by force and its keys have not expired yet. */
  readonly revoked?: boolean;
}
