import { RedlockConfigError } from '../core/errors.js';
import type { JobPolicy, JobSchedule } from '../core/jobs/job-policy.js';
import { jobResource } from '../core/jobs/job-record.js';
import { parseDuration } from '../core/settings/duration.js';
import { ACQUIRE_OPTIONS } from '../core/settings/settings.js';
import { flag, oneOf, only, optional, parser, readOptions, type TableOf, text } from '../core/settings/table.js';
import { resolveFixedKey } from '../nest/lock-options.js';
import type { LockService } from '../nest/lock.service.js';
import { shortestPeriod } from '../nest/module-settings.js';
import { CronSchedule, IntervalSchedule } from './cron-schedule.js';
import type { JobDeclaration, LockedCronOptions, LockedJobOptions } from './locked-job.decorators.js';

// Complete and validated. Durations are in milliseconds.
export interface JobSettings {
  readonly name: string;
  readonly resource: string;
  readonly schedule: JobSchedule;
  readonly policy: JobPolicy;
  readonly ttl: number;
  readonly maxHold: number;
}

// In milliseconds: as fine as cron expressions are.
const SHORTEST_PERIOD = 1_000;
// In milliseconds: a shorter ttl would be lost in an ordinary pause of a process.
const SHORTEST_TTL = 1_000;
const DEFAULT_MAX_HOLD = 24 * 3_600_000;

const INTERVAL_OPTIONS = {
  name: parser('a non-empty string', parseName),
  ttl: ACQUIRE_OPTIONS.ttl,
  maxHold: ACQUIRE_OPTIONS.maxHold,
  recover: optional(flag, true),
  catchUp: optional(flag, false),
  overlap: optional(oneOf('skip', 'queue'), 'skip'),
  service: optional(text),
} satisfies TableOf<LockedJobOptions>;

export const CRON_OPTIONS = {
  ...INTERVAL_OPTIONS,
  timeZone: optional(only<string>("the name of a time zone, as in 'Europe/Berlin'", isTimeZone)),
} satisfies TableOf<LockedCronOptions>;

export function resolveJob(declaration: JobDeclaration, locks: LockService): JobSettings {
  const { where, kind, options } = declaration;
  if ((options as unknown) === undefined) {
    const example =
      kind === 'cron' ? "@LockedCron('0 3 * * *', { name: 'report' })" : "@LockedInterval('5m', { name: 'sync' })";
    throw new RedlockConfigError(where, options, `needs a schedule and a name: ${example}`);
  }
  const given = readOptions(where, options, kind === 'cron' ? CRON_OPTIONS : INTERVAL_OPTIONS);
  const { name, recover, catchUp, overlap } = given;
  const schedule = resolveSchedule(declaration);
  const { settings } = locks.environment;
  const { ttl = defaultTtl(settings.ttl, declaration) } = given;
  const { maxHold = Math.max(DEFAULT_MAX_HOLD, settings.maxHold) } = given;
  locks.check(where, { ttl: options.ttl ?? ttl, maxHold: options.maxHold ?? maxHold });
  return { name, resource: jobResource(name), schedule, policy: { recover, catchUp, overlap }, ttl, maxHold };
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
    return new IntervalSchedule(parseDuration(`${where}: period`, declaration.schedule, SHORTEST_PERIOD));
  }
  const { schedule: expression, options } = declaration;
  if (typeof (expression as unknown) !== 'string') {
    throw new RedlockConfigError(`${where}: expression`, expression, 'must be a cron expression');
  }
  try {
    return new CronSchedule(expression, options.timeZone);
  } catch (error) {
    const [reason = ''] = error instanceof Error ? error.message.split('\n') : [];
    const requirement = `must be a cron expression with a tick: ${reason}`;
    throw new RedlockConfigError(`${where}: expression`, expression, requirement);
  }
}

// A crashed instance should not block the tick after the one that it ran.
function defaultTtl(ofModule: number, { kind, schedule }: JobDeclaration): number {
  const period = kind === 'cron' ? shortestPeriod(schedule) : parseDuration('period', schedule, SHORTEST_PERIOD);
  return Math.min(ofModule, Math.max(Math.floor((period ?? Infinity) / 2), SHORTEST_TTL));
}
