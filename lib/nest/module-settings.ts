import { SystemClock } from '../runtime/system-clock.js';
import { defaultInstance } from '../runtime/instance.js';
import type { Clock } from '../core/clock.js';
import { RedlockConfigError } from '../core/errors.js';
import { parseDuration } from '../core/settings/duration.js';
import { checkOptionNames } from '../core/settings/option-names.js';
import { REDLOCK_OPTION_NAMES } from '../core/settings/options.js';
import { resolveFlag, resolveSettings, type Settings } from '../core/settings/settings.js';
import { adviceFor, countOf, hasMethods } from './masters-option.js';
import type { RedlockModuleOptions } from './redlock-module-options.interface.js';

/** The names of all options of a lock service. */
export const MODULE_OPTION_NAMES = [
  'masters',
  ...REDLOCK_OPTION_NAMES,
  'enabled',
  'lazyConnect',
  'connectTimeout',
  'drainTimeout',
  'clock',
  'observers',
] as const satisfies (keyof RedlockModuleOptions)[];

const CLOCK: readonly (keyof Clock)[] = ['read', 'schedule', 'afterInput'];
const DEFAULT_CONNECT_TIMEOUT = 5_000;
const DEFAULT_DRAIN_TIMEOUT = 5_000;

/** Settings of a module: complete and validated. Durations are in milliseconds. */
export interface ModuleSettings {
  readonly settings: Settings;
  readonly connectTimeout: number;
  readonly drainTimeout: number;
  readonly lazy: boolean;
  readonly enabled: boolean;
  readonly clock: Clock;
}

/**
 * Validates the options of a module and fills in the defaults of the others.
 *
 * @throws {RedlockConfigError} for the first invalid option
 */
export function resolveModule(options: RedlockModuleOptions): ModuleSettings {
  checkModuleOptionNames(options);
  const { instance = defaultInstance() } = options;
  const settings = resolveSettings({ ...options, instance }, countOf(options.masters));
  // A default replaces only `undefined`: `null` is a value.
  const { connectTimeout = DEFAULT_CONNECT_TIMEOUT, drainTimeout = DEFAULT_DRAIN_TIMEOUT } = options;
  const { lazyConnect = false, enabled = true, clock = new SystemClock() } = options;
  const resolved = {
    settings,
    connectTimeout: parseDuration('connectTimeout', connectTimeout, 1),
    drainTimeout: parseDuration('drainTimeout', drainTimeout, 0),
    lazy: resolveFlag('lazyConnect', lazyConnect),
    enabled: resolveFlag('enabled', enabled),
    clock,
  };
  if (!hasMethods(clock, CLOCK)) {
    throw new RedlockConfigError('clock', clock, `must have the methods ${CLOCK.join(', ')}`);
  }
  return resolved;
}

/** @throws {RedlockConfigError} unless the value is an object */
export function checkIsObject(options: unknown): asserts options is object {
  const advice = adviceFor(options);
  if (typeof options === 'object' && options !== null && advice === '') return;
  throw new RedlockConfigError('options', options, `must be a list of masters, or an object with \`masters\`${advice}`);
}

function checkModuleOptionNames(options: unknown): asserts options is RedlockModuleOptions {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new RedlockConfigError(
      'options',
      options,
      'must be an object with `masters`, also as the result of a factory',
    );
  }
  for (const name of ['isGlobal', 'name']) {
    if (name in options) {
      throw new RedlockConfigError(
        name,
        Reflect.get(options, name),
        'belongs beside useFactory, not into what it gives',
      );
    }
  }
  checkOptionNames('options', options, MODULE_OPTION_NAMES);
}
