import type { JobRecord } from '../core/jobs/job-record.js';
import type { JobSchedule } from '../core/jobs/job-schedule.interface.js';
import type { HeldJob } from './job-locks.interface.js';

const DAY = 86_400_000;
/** How long a record is kept at least, in milliseconds. */
const SHORTEST_LIFE = 30 * DAY;

/**
 * Stores the record of a job until after its next tick but one. Masters do not delete values at the same moment, for which
 * a day is added.
 */
export async function storeRecord(lock: HeldJob['lock'], record: JobRecord, schedule: JobSchedule): Promise<void> {
  const twoPeriods = 2 * (schedule.next(record.tick) - record.tick);
  await lock.state.set(record, { expireAfter: Math.max(SHORTEST_LIFE, twoPeriods + 2 * DAY) });
}
