import type { LockService } from '../nest/lock.service.js';
import type { JobLocks } from './job-locks.interface.js';

/** Takes the locks of jobs from a lock service. */
export function locksOf(locks: LockService): JobLocks {
  return locks;
}

/** What the masters keep with the resource of a job. */
export function readStateOf(locks: LockService, resource: string): Promise<{ value: unknown; settled: boolean }> {
  return locks.readState(resource);
}
