import type { LockLostError } from '../redlock/errors.js';
import type { LockNotAcquiredError } from '../waiting/lock-not-acquired.error.js';
import { RedlockConfigError } from './config.error.js';
import type { Duration } from './duration.js';
import type { AcquireOptions, RedlockOptions } from './options.js';
import { keyPrefix } from './resources.js';
import {
  duration,
  flag,
  integer,
  number,
  oneOf,
  only,
  optional,
  parseOptions,
  type TableOf,
  type ValuesOf,
} from './table.js';

// In milliseconds. With a shorter ttl, drift and one round trip leave no usable validity.
const MIN_TTL = 10;
// In milliseconds. A shorter ttl leaves little time for a pause of the process, and is often meant to be in seconds.
const SUSPICIOUS_TTL = 250;
const DEFAULT_MAX_HOLD = 3_600_000;
// With fewer masters, a quarantined one leaves no quorum.
const GUARDED_FROM = 3;
// A master that has all of them taken looks at each.
export const MAX_PERMITS = 1_000;
// Resolution with which a server expires keys, in milliseconds. Added to every drift, and to a wait for an expiry:
// masters set their keys one after the other.
export const EXPIRY_RESOLUTION = 2;
// It is sent with each lock, and servers refuse the names of connections that are not of this form.
const INSTANCE = /^[!-~]{1,100}$/;

const ttl = duration(MIN_TTL);
const wait = duration(0);
const maxHold = duration(1, 'at least the ttl');
export const permits = integer(1, MAX_PERMITS);
const instance = only<string>(
  '1 to 100 printable ASCII characters without spaces',
  (value) => typeof value === 'string' && INSTANCE.test(value),
);

export const REDLOCK_OPTIONS = {
  ttl: optional(ttl, 10_000),
  wait: optional(wait, 5_000),
  maxHold: optional(maxHold),
  masterTimeout: optional(duration(1, '1 ms to a quarter of `ttl`'), 250),
  driftFactor: optional(number(0, 0.5), 0.01),
  maxTtl: optional(duration(MIN_TTL, 'at least `ttl`')),
  restartGuard: optional(flag),
  keyPrefix: optional(keyPrefix, 'lock:'),
  instance: optional(instance, 'unnamed'),
} satisfies TableOf<RedlockOptions>;

export const ACQUIRE_OPTIONS = {
  ttl: optional(ttl),
  wait: optional(wait),
  extend: optional(flag),
  maxHold: optional(maxHold),
  minHold: optional(duration(0, 'to `maxHold`'), 0),
  signal: optional(only<AbortSignal>('an AbortSignal', isSignal)),
  mode: optional(oneOf('exclusive', 'shared'), 'exclusive'),
  permits: optional(permits),
} satisfies TableOf<AcquireOptions>;

// Complete, validated and frozen. Durations are in milliseconds.
export type Settings = {
  readonly [Name in keyof RedlockOptions]-?: NonNullable<ValuesOf<typeof REDLOCK_OPTIONS>[Name]>;
};

// Complete and validated. Durations are in milliseconds.
export interface CallSettings {
  readonly ttl: number;
  readonly wait: number;
  readonly extend: boolean;
  readonly maxHold: number;
  readonly minHold: number;
  readonly signal: AbortSignal | undefined;
  readonly isShared: boolean;
  // `undefined` for a lock.
  readonly permits: number | undefined;
  // Receives the holder that refused an attempt, if a majority named one.
  readonly refused?: (holder: LockNotAcquiredError['holder']) => void;
  // Instead of what the observers give. That such a call waits is not reported, either.
  readonly listener?: { ended(held: number, loss: LockLostError | undefined): void };
  // The work may go on after a shutdown, so that its keys are not released then, but expire.
  readonly outlivesShutdown?: boolean;
}

// Some defaults depend on the number of masters, and on whether one of them is a Sentinel group or a cluster.
export function resolveSettings(options: RedlockOptions, masters = 1, hasGroup = false): Settings {
  const given = parseOptions(REDLOCK_OPTIONS, options);
  const { ttl, masterTimeout, restartGuard = masters >= GUARDED_FROM && !hasGroup } = given;
  const { maxTtl = ttl, maxHold = Math.max(DEFAULT_MAX_HOLD, ttl) } = given;
  if (restartGuard) checkMaxTtl('ttl', ttl, maxTtl, options.ttl ?? ttl);
  checkMaxHold('maxHold', maxHold, ttl, options.maxHold);
  if (options.masterTimeout !== undefined && masterTimeout > ttl / 4) {
    const requirement = `must be at most ${Math.floor(ttl / 4)} ms, a quarter of the ttl`;
    throw new RedlockConfigError('masterTimeout', options.masterTimeout, requirement);
  }
  return Object.freeze(Object.assign(given, { maxTtl, maxHold, restartGuard }));
}

interface CallDefaults {
  // Put before the name of an option in error messages.
  readonly where?: string;
  // Default: false.
  readonly extend?: boolean;
}

// Without a loop, because each call of a program does this. The names of the options were checked before.
export function resolveCall(settings: Settings, options: AcquireOptions, defaults: CallDefaults = {}): CallSettings {
  const { where } = defaults;
  const at = (name: string): string => (where === undefined ? name : `${where}: ${name}`);
  const parse = ACQUIRE_OPTIONS;
  const ttl = resolveTtl(settings, options.ttl, at('ttl'));
  const maxHold = parse.maxHold(at('maxHold'), options.maxHold) ?? Math.max(settings.maxHold, ttl);
  checkMaxHold(at('maxHold'), maxHold, ttl, options.maxHold);
  const call = {
    ttl,
    wait: parse.wait(at('wait'), options.wait) ?? settings.wait,
    extend: parse.extend(at('extend'), options.extend) ?? defaults.extend ?? false,
    maxHold,
    minHold: parse.minHold(at('minHold'), options.minHold),
    signal: parse.signal(at('signal'), options.signal),
    isShared: parse.mode(at('mode'), options.mode) === 'shared',
    permits: parse.permits(at('permits'), options.permits),
  };
  if (options.minHold !== undefined) checkMinHold(at('minHold'), call, options.minHold);
  if (call.isShared) refuseWithShared(at, options);
  return interned(call);
}

// Most calls of a program have equal settings, and held locks keep them.
let previous: CallSettings | undefined;

function interned(call: CallSettings): CallSettings {
  if (call.signal) return call;
  if (!previous || !areEqual(call, previous)) previous = Object.freeze(call);
  return previous;
}

function areEqual(one: CallSettings, other: CallSettings): boolean {
  return (
    one.ttl === other.ttl &&
    one.wait === other.wait &&
    one.extend === other.extend &&
    one.maxHold === other.maxHold &&
    one.minHold === other.minHold &&
    one.signal === other.signal &&
    one.isShared === other.isShared &&
    one.permits === other.permits
  );
}

export function warningOfTtl(ttl: number): string | undefined {
  return ttl < SUSPICIOUS_TTL ? `ttl is ${ttl} ms: were seconds meant? Then write '${ttl}s'` : undefined;
}

// In milliseconds.
export function resolveTtl(settings: Settings, given: Duration | undefined, option = 'ttl'): number {
  if (given === undefined) return settings.ttl;
  const milliseconds = ttl(option, given);
  if (settings.restartGuard) checkMaxTtl(option, milliseconds, settings.maxTtl, given);
  return milliseconds;
}

// How far the clocks of this client and of a server may drift apart during a ttl, in milliseconds.
export function driftOf(settings: Settings, ttl: number): number {
  return ttl * settings.driftFactor + EXPIRY_RESOLUTION;
}

// In milliseconds.
// Protocol 4.1
export function masterTimeoutFor(settings: Settings, ttl: number): number {
  return Math.min(settings.masterTimeout, ttl / 4);
}

// Protocol 8.1
function checkMaxTtl(option: string, value: number, maxTtl: number, given: unknown): void {
  if (value <= maxTtl) return;
  const requirement =
    `is ${value} ms, and must be at most maxTtl, which is ${maxTtl} ms: ` +
    'raise the option `maxTtl` of the module, in all processes first';
  throw new RedlockConfigError(option, given, requirement);
}

function checkMaxHold(option: string, value: number, ttl: number, given: unknown): void {
  if (value < ttl) throw new RedlockConfigError(option, given, `must be at least the ttl, which is ${ttl} ms`);
}

function checkMinHold(option: string, { minHold, maxHold }: CallSettings, given: unknown): void {
  if (minHold > maxHold) throw new RedlockConfigError(option, given, `must be at most maxHold, which is ${maxHold} ms`);
}

function refuseWithShared(at: (name: string) => string, options: AcquireOptions): void {
  for (const name of ['minHold', 'permits'] as const) {
    if (options[name] === undefined) continue;
    throw new RedlockConfigError(at(name), options[name], `cannot be given with mode: 'shared'`);
  }
}

// An object that merely inherits from a signal passes `instanceof`, but throws when `aborted` is read.
function isSignal(value: unknown): value is AbortSignal {
  try {
    return value instanceof AbortSignal && typeof value.aborted === 'boolean';
  } catch {
    return false;
  }
}
