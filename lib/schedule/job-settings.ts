import { RedlockConfigError } from '../core/errors.js';
import type { JobPolicy, JobSchedule } from '../core/jobs/job-policy.js';
import { jobResource } from '../core/jobs/job-record.js';
import { parseDuration } from '../core/settings/duration.js';
import { checkOptionNames } from '../core/settings/option-names.js';
import { resolveFlag } from '../core/settings/settings.js';
import { resolveFixedKey } from '../nest/lock-options.js';
import type { LockService } from '../nest/lock.service.js';
import { shortestPeriod } from '../nest/module-settings.js';
import { CronSchedule, IntervalSchedule } from './cron-schedule.js';
import { CRON_OPTION_NAMES, INTERVAL_OPTION_NAMES, type JobDeclaration } from './locked-job.decorators.js';

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

export function resolveJob(declaration: JobDeclaration, locks: LockService): JobSettings {
  const { where, kind, options } = declaration;
  if ((options as unknown) === undefined) {
    const example =
      kind === 'cron' ? "@LockedCron('0 3 * * *', { name: 'report' })" : "@LockedInterval('5m', { name: 'sync' })";
    throw new RedlockConfigError(where, options, `needs a schedule and a name: ${example}`);
  }
  checkOptionNames(where, options, kind === 'cron' ? CRON_OPTION_NAMES : INTERVAL_OPTION_NAMES);
  const { recover = true, catchUp = false, overlap = 'skip' } = options;
  const name = resolveName(where, options.name);
  if (!['skip', 'queue'].includes(overlap)) {
    throw new RedlockConfigError(`${where}: overlap`, overlap, `must be 'skip' or 'queue'`);
  }
  const policy: JobPolicy = {
    recover: resolveFlag(`${where}: recover`, recover),
    catchUp: resolveFlag(`${where}: catchUp`, catchUp),
    overlap,
  };
  const schedule = resolveSchedule(declaration);
  const { settings } = locks.environment;
  const { ttl = defaultTtl(settings.ttl, declaration) } = options;
  const { maxHold = Math.max(DEFAULT_MAX_HOLD, settings.maxHold) } = options;
  locks.check(where, { ttl, maxHold });
  return {
    ...{ name, resource: jobResource(name), schedule, policy },
    ttl: parseDuration(`${where}: ttl`, ttl, 0),
    maxHold: parseDuration(`${where}: maxHold`, maxHold, 0),
  };
}

function resolveName(where: string, name: unknown): string {
  if (typeof name !== 'string' || name === '') {
    const requirement = `must be a non-empty string that names the job on all instances, as in { name: 'report' }`;
    throw new RedlockConfigError(`${where}: name`, name, requirement);
  }
  resolveFixedKey(`${where}: name`, name);
  return name;
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
  checkTimeZone(where, options.timeZone);
  try {
    return new CronSchedule(expression, options.timeZone);
  } catch (error) {
    const [reason = ''] = error instanceof Error ? error.message.split('\n') : [];
    throw new RedlockConfigError(
      `${where}: expression`,
      expression,
      `must be a cron expression with a tick: ${reason}`,
    );
  }
}

function checkTimeZone(where: string, timeZone: unknown): void {
  if (timeZone === undefined) return;
  try {
    if (typeof timeZone === 'string' && timeZone !== '') {
      new CronSchedule('* * * * *', timeZone);
      return;
    }
  } catch {
    // Reported below.
  }
  throw new RedlockConfigError(
    `${where}: timeZone`,
    timeZone,
    `must be the name of a time zone, as in 'Europe/Berlin'`,
  );
}

// A crashed instance should not block the tick after the one that it ran.
function defaultTtl(ofModule: number, { kind, schedule }: JobDeclaration): number {
  const period = kind === 'cron' ? shortestPeriod(schedule) : parseDuration('period', schedule, SHORTEST_PERIOD);
  return Math.min(ofModule, Math.max(Math.floor((period ?? Infinity) / 2), SHORTEST_TTL));
}
