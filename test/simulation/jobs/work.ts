import type { JobRun } from '../../../lib/schedule/job-locks.js';
import type { JobInstance } from './job-instance.js';
import type { JobsWorld } from './jobs-world.js';

/** How a method heeds its signal: it ends at once with an error, looks at it half-way, or never does. */
type Care = 'listens' | 'looks' | 'ignores';

/** The method of the job, as an application may write it. */
export function doWork(world: JobsWorld, instance: JobInstance, run: JobRun): Promise<void> {
  const { chance } = instance;
  const { least, most, fails, minds } = world.plan.work;
  const duration = chance.spread(least, most);
  const isFailing = chance.happens(fails);
  const care: Care = chance.happens(minds) ? chance.pick(['listens', 'looks'] as const) : 'ignores';
  return new Promise<void>((resolve, reject) => {
    const tick = run.scheduledFor.getTime();
    const entry = world.guard(() => world.ledger.noteStart(instance, { tick, attempt: run.attempt }, run.lock));
    world.trace(
      instance.name,
      () => `RUNS ${world.nameOf(tick)}, attempt ${run.attempt}, for ${duration.toFixed(0)} ms`,
    );
    world.arrive('runs', instance);
    const end = (error?: Error): void => {
      if (!entry || entry.endedAt !== Infinity) return;
      entry.endedAt = world.scheduler.now;
      entry.isHandedOn = error !== undefined && instance.stopping.signal.aborted;
      world.trace(instance.name, () => `has run ${world.nameOf(tick)}${error ? `: ${error.message}` : ''}`);
      world.arrive('has run', instance);
      if (error) reject(error);
      else resolve();
    };
    const give = (): void => end(run.signal.reason as Error);
    if (care === 'listens') run.signal.addEventListener('abort', give);
    if (care === 'looks') world.later(instance, duration / 2, () => run.signal.aborted && give());
    world.later(instance, duration, () => end(isFailing ? new Error('the work has failed') : undefined));
  });
}
