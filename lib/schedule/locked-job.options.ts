import type { Duration } from '../core/settings/duration.js';

/** Options of `@LockedInterval`, and of `@LockedCron`, which has one more. */
export interface LockedJobOptions {
  /**
   * Names the job on all instances: those that run a job of the same name, with the same schedule, share its ticks. The
   * lock has the resource `job:` and this name.
   */
  name: string;
  /**
   * How long a crashed instance blocks the job. Another instance then runs the tick again.
   * @default the module's `ttl`, or half the shortest time between two ticks if that is less, but at least a second
   */
  ttl?: Duration;
  /**
   * Longest time that a run may take. A run that reaches it loses its lock, and the tick is run again.
   * @default '24h', or the module's `maxHold` if that is longer
   */
  maxHold?: Duration;
  /**
   * Whether a tick runs again if its end was not recorded, because its instance crashed, lost the lock or was shut down.
   * `true`: each tick runs at least once. `false`: at most once.
   * @default true
   */
  recover?: boolean;
  /**
   * Whether the last tick runs that was missed while no instance was up, as soon as one is.
   * @default false
   */
  catchUp?: boolean;
  /**
   * What happens to a tick that comes due while an earlier one still runs, on any instance. `'skip'`: it does not run.
   * `'queue'`: it runs afterwards; of several, only the last.
   * @default 'skip'
   */
  overlap?: 'skip' | 'queue';
  /** Name of the lock service to use, if the module is registered with a `name`. */
  service?: string;
}

/** Options of `@LockedCron`. */
export interface LockedCronOptions extends LockedJobOptions {
  /**
   * Time zone of the expression, such as `'Europe/Berlin'`. Give it if instances may run in different ones.
   * @default the time zone of the process
   */
  timeZone?: string;
}

export const INTERVAL_OPTION_NAMES = [
  'name',
  'ttl',
  'maxHold',
  'recover',
  'catchUp',
  'overlap',
  'service',
] as const satisfies readonly (keyof LockedJobOptions)[];

export const CRON_OPTION_NAMES = [
  ...INTERVAL_OPTION_NAMES,
  'timeZone',
] as const satisfies readonly (keyof LockedCronOptions)[];
