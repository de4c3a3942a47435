import { declareJob, type JobDecorator } from './job-declaration.js';
import type { LockedCronOptions } from './locked-job.options.js';

/**
 * Runs a method at the times of a cron expression, each time on one of the instances of the application. For methods
 * that return a promise, of any singleton provider or controller.
 *
 * ```ts
 * @LockedCron(CronExpression.EVERY_DAY_AT_3AM, { name: 'report', timeZone: 'Europe/Berlin' })
 * async report(run: JobRun) { ... }
 * ```
 *
 * A tick is identified by its nominal time, so that instances agree on it while their clocks differ by less than half
 * the time between two ticks, and by less than a minute. A tick whose end is recorded never runs again. A tick whose
 * instance crashed runs again on another one within one ttl, unless `recover` is false.
 *
 * An error of the method is logged and recorded as the outcome; the tick does not run again because of it.
 *
 * @param expression five or six fields, as `@nestjs/schedule` takes them
 * @throws {RedlockConfigError} at class definition, on a static method, an accessor, a generator or a method that returns
 * an Observable; at boot, for a missing or duplicate name, an invalid expression, time zone or option, and without
 * `RedlockModule` or `ScheduleModule`
 * @see https://docs.nestjs.com/techniques/task-scheduling
 */
export function LockedCron(expression: string, options: LockedCronOptions): JobDecorator {
  return declareJob('@LockedCron', { kind: 'cron', schedule: expression, options });
}
