import type { Duration } from '../core/settings/duration.js';
import 'reflect-metadata';
import { isObservable } from 'rxjs';
import { RedlockConfigError } from '../core/errors.js';
import { JOB_DECLARATIONS, JOBS } from '../nest/lock-service.token.js';
import { declareMethod, type MethodDeclaration } from '../nest/declared-methods.js';
import { classNameOf } from '../nest/lockable-method.js';
import type { JobRun } from './job-locks.js';

/** Options of `@LockedInterval`, and of `@LockedCron`, which has one more. */
export interface LockedJobOptions {
  /**
   * Names the job on all instances; its lock has the resource `job:` and this name. Instances that run a job of the same
   * name, with the same schedule, share its ticks.
   */
  name: string;
  /**
   * How long a crashed instance blocks the job; another one then runs the tick again.
   * @default the module's `ttl`, at most half the shortest period, but at least a second
   */
  ttl?: Duration;
  /**
   * Longest time of a run; one that reaches it loses its lock, and the tick runs again.
   * @default '24h', or the module's `maxHold` if longer
   */
  maxHold?: Duration;
  /**
   * Whether a tick whose end was not recorded runs again: at least once; `false`: at most once. Its instance crashed,
   * lost the lock or was shut down.
   * @default true
   */
  recover?: boolean;
  /**
   * Whether the last tick runs that was missed while no instance was up. It does as soon as one is.
   * @default false
   */
  catchUp?: boolean;
  /**
   * What happens to a tick that comes due while an earlier one runs, on any instance. `'skip'`: it does not run.
   * `'queue'`: it runs afterwards; of several, only the last.
   * @default 'skip'
   */
  overlap?: 'skip' | 'queue';
  /** Name of the lock service to use. For a module that is registered with a `name`. */
  service?: string;
}

/** Options of `@LockedCron`. */
export interface LockedCronOptions extends LockedJobOptions {
  /**
   * Time zone of the expression; not for `@LockedInterval`. Give it if instances may run in different ones.
   * @default the time zone of the process
   */
  timeZone?: string;
}

/** What a job can be: a method that returns a promise. */
export type JobMethod = (run: JobRun) => PromiseLike<unknown>;

/** The decorator that `@LockedCron` and `@LockedInterval` return. */
export type JobDecorator = <Method extends JobMethod>(
  target: object,
  property: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

// Checked at boot.
export type JobDeclaration = MethodDeclaration &
  (
    | { readonly kind: 'cron'; readonly schedule: string; readonly options: LockedCronOptions }
    | { readonly kind: 'interval'; readonly schedule: Duration; readonly options: LockedJobOptions }
  );

type DeclarationOf<Kind> = Omit<Extract<JobDeclaration, { readonly kind: Kind }>, 'where' | 'property'>;

function declareJob(decorator: string, declaration: DeclarationOf<'cron'> | DeclarationOf<'interval'>): JobDecorator {
  return (...member): void => {
    declareMethod({ decorator, key: JOB_DECLARATIONS, token: JOBS }, member, declaration);
    refuseObservableType(`${decorator} on ${classNameOf(member[0])}.${String(member[1])}`, member[0], member[1]);
  };
}

// The compiler emits the type only if `emitDecoratorMetadata` is on; a run checks the value, too.
function refuseObservableType(where: string, target: object, property: string | symbol): void {
  const type: unknown = Reflect.getMetadata('design:returntype', target, property);
  if (typeof type !== 'function' || !isObservable(type.prototype)) return;
  throw new RedlockConfigError(where, 'an Observable', 'needs a method that returns a promise');
}

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
