import type { RedlockStatus } from '../core/health/status.js';
import type { JobOutcome } from '../core/jobs/job-record.js';
import type { OwnLocks } from '../core/own-locks.js';
import type { LockInspection, SlotInspection } from '../core/inspection.js';
import type { Availability } from './availability.js';
import type { DashboardEvent } from './event-log.js';

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
