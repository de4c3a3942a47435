import { type ComposableDecorator, type Duration, type LockService, RedlockConfigError } from '../index.js';
import { ACQUIRE_OPTIONS, calledMethods, jobRecords, resolveFixedKey, schema, shortestPeriod } from '../internal.js';
import type { JobPolicy, JobSchedule } from './job-policy.js';
import { CronSchedule, IntervalSchedule } from './cron-schedule.js';
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
export type JobDecorator = (<Method extends JobMethod>(
  target: object,
  property: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void) &
  ComposableDecorator;

// Checked at boot.
export type JobDeclaration = calledMethods.MethodDeclaration &
  (
    | { readonly kind: 'cron'; readonly schedule: string; readonly options: LockedCronOptions }
    | { readonly kind: 'interval'; readonly schedule: Duration; readonly options: LockedJobOptions }
  );

type DeclarationOf<Kind> = Omit<Extract<JobDeclaration, { readonly kind: Kind }>, 'where' | 'property'>;

function declareJob(decorator: string, declaration: DeclarationOf<'cron'> | DeclarationOf<'interval'>): JobDecorator {
  return calledMethods.declaring(decorator, calledMethods.CALLED_METHODS.jobs, declaration);
}

/**
 * Runs a method at the times of a cron expression, each time on one of the instances of the application. For methods
 * that return a promise, of any singleton provider, controller, guard or the like, or middleware.
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

// Complete and validated. Durations are in milliseconds.
export interface JobSettings {
  readonly name: string;
  readonly resource: string;
  // The decorator, class, method and schedule, which the record has, too.
  readonly declared: string;
  readonly schedule: JobSchedule;
  readonly policy: JobPolicy;
  readonly ttl: number;
  readonly maxHold: number;
}

// As fine as cron expressions are.
const PERIOD = schema.duration(1_000);

// In milliseconds: a shorter ttl would be lost in an ordinary pause of a process.
const SHORTEST_TTL = 1_000;

const DEFAULT_MAX_HOLD = 24 * 3_600_000;

const INTERVAL_OPTIONS = {
  name: schema.parser('a non-empty string', parseName),
  ttl: ACQUIRE_OPTIONS.ttl,
  maxHold: ACQUIRE_OPTIONS.maxHold,
  recover: schema.optional(schema.flag, true),
  catchUp: schema.optional(schema.flag, false),
  overlap: schema.optional(schema.oneOf('skip', 'queue'), 'skip'),
  service: schema.optional(schema.text),
} satisfies schema.TableOf<LockedJobOptions>;

export const CRON_OPTIONS = {
  ...INTERVAL_OPTIONS,
  timeZone: schema.optional(schema.only<string>("the name of a time zone, as in 'Europe/Berlin'", isTimeZone)),
} satisfies schema.TableOf<LockedCronOptions>;

export function resolveJob(declaration: JobDeclaration, locks: LockService): JobSettings {
  const { where, kind, options } = declaration;
  if ((options as unknown) === undefined) {
    const example =
      kind === 'cron' ? "@LockedCron('0 3 * * *', { name: 'report' })" : "@LockedInterval('5m', { name: 'sync' })";
    throw new RedlockConfigError(where, options, `needs a schedule and a name: ${example}`);
  }
  const given = schema.readOptions(where, options, kind === 'cron' ? CRON_OPTIONS : INTERVAL_OPTIONS);
  const { name, recover, catchUp, overlap } = given;
  const schedule = resolveSchedule(declaration);
  const { settings } = locks.environment;
  const { ttl = defaultTtl(settings.ttl, declaration) } = given;
  const { maxHold = Math.max(DEFAULT_MAX_HOLD, settings.maxHold) } = given;
  locks.check(where, { ttl: options.ttl ?? ttl, maxHold: options.maxHold ?? maxHold });
  return {
    name,
    resource: jobRecords.jobResource(name),
    declared: declarationText(declaration),
    schedule,
    policy: { recover, catchUp, overlap },
    ttl,
    maxHold,
  };
}

// In characters: the rest of the record needs its room.
const LONGEST_TEXT = 300;

function declarationText({ where, schedule, options }: JobDeclaration): string {
  const { timeZone } = options as LockedCronOptions;
  return (
    [`${where}('${schedule}'`, ...(timeZone === undefined ? [] : [timeZone])].join(', ').slice(0, LONGEST_TEXT) + ')'
  );
}

function parseName(option: string, name: unknown): string {
  if (typeof name !== 'string' || name === '') {
    const requirement = `must be a non-empty string that names the job on all instances, as in { name: 'report' }`;
    throw new RedlockConfigError(option, name, requirement);
  }
  resolveFixedKey(option, name);
  return name;
}

function isTimeZone(timeZone: unknown): boolean {
  try {
    return typeof timeZone === 'string' && timeZone !== '' && Boolean(new CronSchedule('* * * * *', timeZone));
  } catch {
    return false;
  }
}

function resolveSchedule(declaration: JobDeclaration): JobSchedule {
  const { where } = declaration;
  if (declaration.kind === 'interval') {
    return new IntervalSchedule(PERIOD(`${where}: period`, declaration.schedule));
  }
  const { schedule: expression, options } = declaration;
  if (typeof (expression as unknown) !== 'string') {
    throw new RedlockConfigError(`${where}: expression`, expression, "must be a cron expression, as in '0 3 * * *'");
  }
  try {
    return new CronSchedule(expression, options.timeZone);
  } catch (error) {
    const [reason = ''] = error instanceof Error ? error.message.split('\n') : [];
    const requirement = `must be a cron expression with a tick, as in '0 3 * * *': ${reason}`;
    throw new RedlockConfigError(`${where}: expression`, expression, requirement);
  }
}

// A crashed instance should not block the tick after the one that it ran.
function defaultTtl(ofModule: number, { kind, schedule }: JobDeclaration): number {
  const period = kind === 'cron' ? shortestPeriod(schedule) : PERIOD('period', schedule);
  return Math.min(ofModule, Math.max(Math.floor((period ?? Infinity) / 2), SHORTEST_TTL));
}
