import { RedlockConfigError } from '../settings/config.error.js';
import { isClient } from '../redis/redis-client.interface.js';
import { isGroup } from '../redis/master-source.js';
import { isListOfAddresses } from '../redis/urls.js';
import type {
  LockingModuleOptions,
  RedlockModuleExtras,
  RedlockModuleOptions,
} from './redlock-module-options.interface.js';
import type { LoggerService } from '@nestjs/common';
import type { LockObserver } from '../operate/observer.js';
import { SystemClock } from '../runtime/system-clock.js';
import { defaultInstance } from '../runtime/system.js';
import type { Clock } from '../redlock/clock.js';
import {
  checkOptionNames,
  duration,
  flag,
  hasMethods,
  isObject,
  list,
  objectWith,
  only,
  optional,
  parseOptions,
  parser,
  type TableOf,
  text,
  type ValuesOf,
} from '../settings/table.js';
import { REDLOCK_OPTIONS, resolveSettings, type Settings } from '../settings/settings.js';

// What a value that is no list of masters may have been meant as.
export function adviceFor(sources: unknown): string {
  if (typeof sources === 'string' && sources !== '' && sources !== 'memory') {
    return isListOfAddresses(sources)
      ? "; split a list of addresses at its commas, .split(',')"
      : '; one address goes into a list, such as [url]';
  }
  if (sources === undefined || sources === '') return '; an environment variable may be missing';
  return hasMethods(sources, ['duplicate']) && isClient(sources) ? '; a client goes into a list, such as [client]' : '';
}

export function countOf(sources: unknown): number | undefined {
  try {
    return Array.isArray(sources) && sources.length > 0 ? sources.length : undefined;
  } catch {
    return undefined;
  }
}

function hasGroup(sources: unknown): boolean {
  try {
    return Array.isArray(sources) && sources.some(isGroup);
  } catch {
    return false;
  }
}

export function reportTo(logger: LoggerService, observed = 'locks'): (error: unknown) => void {
  return (error) => {
    try {
      logger.error(`an observer of ${observed} threw: ${String(error)}`);
    } catch {
      // Observers are called from timers and sockets, where an error of the logger would end the process.
    }
  };
}

// The seconds, minutes and hours of a cron expression: how many there are, and the milliseconds of one.
const FIELDS = [
  { size: 60, unit: 1_000 },
  { size: 60, unit: 60_000 },
  { size: 24, unit: 3_600_000 },
];
const DAY = 86_400_000;
const PART = /^(?:\*|(\d+)(?:-(\d+))?)(?:\/(\d+))?$/;

// In milliseconds: that of the finest field with several values.
export function shortestPeriod(expression: string): number | undefined {
  const words = expression.trim().split(/\s+/);
  if (words.length !== 5 && words.length !== 6) return undefined;
  const fields = words.length === 5 ? ['0', ...words] : words;
  for (const [index, { size, unit }] of FIELDS.entries()) {
    const values = valuesOf(fields[index] ?? '', size);
    if (!values) return undefined;
    if (values.length > 1) return smallestGap(values, size) * unit;
  }
  return DAY;
}

// `undefined` if the field is not understood.
function valuesOf(field: string, size: number): number[] | undefined {
  const values = new Set<number>();
  for (const part of field.split(',')) {
    const match = PART.exec(part);
    if (!match) return undefined;
    const [, from = '0', to, step] = match;
    const isAll = match[1] === undefined || (step !== undefined && to === undefined);
    const last = to === undefined ? (isAll ? size - 1 : Number(from)) : Number(to);
    const by = Math.max(1, Number(step ?? 1));
    for (let value = Number(from); value <= Math.min(last, size - 1); value += by) values.add(value);
  }
  return values.size === 0 ? undefined : [...values].sort((a, b) => a - b);
}

// Across the end of the unit, too.
function smallestGap(values: readonly number[], size: number): number {
  return Math.min(...values.map((value, index) => (values[index + 1] ?? (values[0] ?? 0) + size) - value));
}

export const clockOption = optional(objectWith<Clock>(['read', 'schedule', 'afterInput']));

const OWN_OPTIONS = {
  enabled: optional(flag, true),
  lazyConnect: optional(flag, false),
  connectTimeout: optional(duration(1), 5_000),
  drainTimeout: optional(duration(0), 5_000),
  clock: clockOption,
  observers: optional(list('a list of observers', only<LockObserver>('an observer', isObject)), []),
};

export const MODULE_OPTIONS = {
  // Needs what the other options give: see `createMasters`.
  masters: parser('at least one, no server twice', (_, value) => value),
  ...REDLOCK_OPTIONS,
  ...OWN_OPTIONS,
} satisfies TableOf<LockingModuleOptions>;

// Known before the other options of `forRootAsync`.
export const EXTRAS = { isGlobal: optional(flag, true), name: optional(text) } satisfies TableOf<RedlockModuleExtras>;

interface ModuleSettings extends Omit<ValuesOf<typeof OWN_OPTIONS>, 'clock'> {
  readonly settings: Settings;
  readonly clock: Clock;
}

export function resolveModule(options: RedlockModuleOptions): ModuleSettings {
  checkModuleOptionNames(options);
  const { instance = defaultInstance() } = options;
  const settings = resolveSettings({ ...options, instance }, countOf(options.masters), hasGroup(options.masters));
  const { clock = new SystemClock(), ...own } = parseOptions(OWN_OPTIONS, options);
  return { ...own, settings, clock };
}

function checkModuleOptionNames(options: unknown): asserts options is RedlockModuleOptions {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    const requirement = 'must be a list of masters, or an object with `masters`, also as the result of a factory';
    throw new RedlockConfigError('options', options, requirement);
  }
  const misplaced = Object.keys(EXTRAS).find((name) => name in options);
  if (misplaced !== undefined) {
    const requirement = 'belongs beside useFactory, not into what it gives';
    throw new RedlockConfigError(misplaced, Reflect.get(options, misplaced), requirement);
  }
  checkOptionNames('options', options, MODULE_OPTIONS);
}
