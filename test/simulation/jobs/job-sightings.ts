import { RedlockConfigError } from '../../../lib/settings/config.error.js';
import { isLockError } from '../../../lib/errors.js';
import type { JobObserver } from '../../../lib/operate/job-observer.js';
import { JobHandedOnError } from '../../../lib/schedule/job-locks.js';
import type { JobInstance } from './job-instance.js';
import type { JobsWorld } from './jobs-world.js';

/** Counts rare states in what the engine of jobs reports, and takes errors that it should not meet as failures. */
export function jobObserver(world: JobsWorld, instance: JobInstance): JobObserver {
  return {
    ended: (_, { scheduledFor }) => {
      world.trace(instance.name, () => `has recorded the end of ${world.nameOf(scheduledFor.getTime())}`);
      if (!instance.isUp) world.reached('a run ended in time for a shutdown');
      const queued = world.ledger.runs.some(
        (run) =>
          run.endedAt !== Infinity &&
          run.tick < scheduledFor.getTime() &&
          run.endedAt > world.moment(scheduledFor.getTime()),
      );
      if (queued) world.reached('a tick was queued behind a run');
    },
    unfinished: (_, { scheduledFor }, cause) => {
      world.trace(instance.name, () => `leaves ${world.nameOf(scheduledFor.getTime())} unfinished: ${String(cause)}`);
      if (cause instanceof JobHandedOnError) world.reached('a run was handed on at a shutdown');
    },
    skipped: (_, { scheduledFor, reason }) => {
      world.trace(instance.name, () => `skips ${world.nameOf(scheduledFor.getTime())}: ${reason}`);
      if (reason === 'abandoned') world.reached('a crashed tick was abandoned');
      if (reason === 'unknown') world.reached('a tick was marked unknown');
      if (reason === 'baseline') world.reached('a baseline was stored');
      if (reason === 'overlap') world.reached('a tick was skipped because of an overlap');
      if (reason === 'superseded') world.reached('a tick was superseded');
    },
    delayed: (_, cause) => {
      world.trace(instance.name, () => `is delayed: ${String(cause)}`);
      if (!isLockError(cause) || cause instanceof RedlockConfigError) world.report(cause);
    },
  };
}
