import type { RedlockStatus } from '../core/health/status.js';
import type { OwnLocks } from '../core/own-locks.js';
import type { LockInspection } from '../core/redlock.js';
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

/** One resource. */
export interface InspectionView extends Omit<LockInspection, 'masters' | 'holder'> {
  readonly at: number;
  /** The reply of each master, in words. */
  readonly masters: readonly { readonly master: string; readonly kind: string; readonly text: string }[];
  readonly holder?: { readonly instance: string; readonly since: number };
  /** Identifies the holder that was found, without its token. Absent if there is nothing to release. */
  readonly ticket?: string;
  /** Whether the lock was released by force and its keys have not expired yet. */
  readonly revoked?: boolean;
}
