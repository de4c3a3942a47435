import type { Duration } from '../core/settings/duration.js';
import { declareJob, type JobDecorator } from './job-declaration.js';
import type { LockedJobOptions } from './locked-job.options.js';

/**
 * Like `@LockedCron`, at the multiples of a period since the Unix epoch: `'5m'` is due at minutes 0, 5, 10, ... of each
 * hour, whenever an instance was started.
 *
 * ```ts
 * @LockedInterval('5m', { name: 'sync' })
 * async sync(run: JobRun) { ... }
 * ```
 *
 * @param period milliseconds, or a string such as `'30s'`; at least a second
 * @throws {RedlockConfigError} as `@LockedCron` does, and at boot for an invalid period
 */
export function LockedInterval(period: Duration, options: LockedJobOptions): JobDecorator {
  return declareJob('@LockedInterval', { kind: 'interval', schedule: period, options });
}
