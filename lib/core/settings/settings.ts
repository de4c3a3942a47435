import { type Duration, MAX_DURATION, parseDuration } from './duration.js';
import { RedlockConfigError } from '../errors.js';
import type { AcquireOptions, RedlockOptions } from './options.js';
import { resolveKeyPrefix } from './resources.js';

// Complete, validated and frozen. Durations are in milliseconds.
export interface Settings {
  readonly ttl: number;
  readonly wait: number;
  readonly maxHold: number;
  readonly masterTimeout: number;
  readonly driftFactor: number;
  readonly maxTtl: number;
  readonly restartGuard: boolean;
  readonly durable: boolean;
  readonly keyPrefix: string;
  readonly instance: string;
}

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
}

const DEFAULT_TTL = 10_000;
const DEFAULT_WAIT = 5_000;
const DEFAULT_MAX_HOLD = 3_600_000;
const DEFAULT_MAX_TTL = 30_000;
const DEFAULT_MASTER_TIMEOUT = 50;
const DEFAULT_DRIFT_FACTOR = 0.01;
const DEFAULT_KEY_PREFIX = 'lock:';
const DEFAULT_INSTANCE = 'unnamed';
// It is sent with each lock, and servers refuse the names of connections that are not of this form.
const INSTANCE = /^[!-~]{1,100}$/;

// With fewer masters, a quarantined one leaves no quorum.
const GUARDED_FROM = 3;
// In milliseconds. With a shorter ttl, drift and one round trip leave no usable validity.
const MIN_TTL = 10;
// In milliseconds. A shorter ttl leaves little time for a pause of the process, and is often meant to be in seconds.
const SUSPICIOUS_TTL = 250;
const MAX_DRIFT_FACTOR = 0.5;
// A master that has all of them taken looks at each.
export const MAX_PERMITS = 1_000;
// Resolution with which a server expires keys, in milliseconds. Added to every drift, and to a wait for an expiry:
// masters set their keys one after the other.
export const EXPIRY_RESOLUTION = 2;

// Some defaults depend on the number of masters.
export function resolveSettings(options: RedlockOptions, masters = 1): Settings {
  const { ttl: ttlOption = DEFAULT_TTL, wait = DEFAULT_WAIT } = options;
  const { driftFactor = DEFAULT_DRIFT_FACTOR, keyPrefix = DEFAULT_KEY_PREFIX } = options;
  const ttl = parseDuration('ttl', ttlOption, MIN_TTL);
  const { maxTtl: maxTtlOption = Math.max(DEFAULT_MAX_TTL, ttl), maxHold = Math.max(DEFAULT_MAX_HOLD, ttl) } = options;
  const maxTtl = parseDuration('maxTtl', maxTtlOption, MIN_TTL);
  checkTtl('ttl', ttl, maxTtl);
  return Object.freeze({
    ttl,
    maxTtl,
    wait: parseDuration('wait', wait, 0),
    maxHold: resolveMaxHold('maxHold', maxHold, ttl),
    masterTimeout: resolveMasterTimeout(options.masterTimeout, ttl),
    driftFactor: resolveDriftFactor(driftFactor),
    restartGuard: resolveFlag(
      'restartGuard',
      options.restartGuard === undefined ? masters >= GUARDED_FROM : options.restartGuard,
    ),
    durable: resolveFlag('durable', options.durable === undefined ? false : options.durable),
    keyPrefix: resolveKeyPrefix(keyPrefix),
    instance: resolveInstance(options.instance),
  });
}

interface CallDefaults {
  // Put before the name of an option in error messages.
  readonly where?: string;
  // Default: false.
  readonly extend?: boolean;
}

// The names of the options were checked before.
export function resolveCall(settings: Settings, options: AcquireOptions, defaults: CallDefaults = {}): CallSettings {
  const { where } = defaults;
  const at = (name: string): string => (where === undefined ? name : `${where}: ${name}`);
  const milliseconds = resolveTtl(settings, options.ttl, at('ttl'));
  const { wait = settings.wait, extend = defaults.extend ?? false, minHold = 0, signal } = options;
  const { maxHold: maxHoldOption = Math.max(settings.maxHold, milliseconds) } = options;
  const maxHold = resolveMaxHold(at('maxHold'), maxHoldOption, milliseconds);
  const { isShared, permits } = resolveSharing(at, options);
  return shared({
    ttl: milliseconds,
    wait: parseDuration(at('wait'), wait, 0),
    extend: resolveFlag(at('extend'), extend),
    maxHold,
    minHold: resolveMinHold(at('minHold'), settings, minHold, maxHold),
    signal: resolveSignal(at('signal'), signal),
    isShared,
    permits,
  });
}

// Most calls of a program have equal settings, and held locks keep them.
let previous: CallSettings | undefined;

function shared(call: CallSettings): CallSettings {
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
export function resolveTtl(settings: Settings, ttl: Duration | undefined, option = 'ttl'): number {
  if (ttl === undefined) return settings.ttl;
  const milliseconds = parseDuration(option, ttl, MIN_TTL);
  checkTtl(option, milliseconds, settings.maxTtl);
  return milliseconds;
}

// How far the clocks of this client and of a server may drift apart during a ttl, in milliseconds.
export function driftOf(settings: Settings, ttl: number): number {
  return ttl * settings.driftFactor + EXPIRY_RESOLUTION;
}

// The ttl of which so many milliseconds are left for a holder.
export function ttlFor({ driftFactor }: Settings, validity: number): number {
  return Math.ceil((validity + EXPIRY_RESOLUTION) / (1 - driftFactor));
}

// In milliseconds.
// Protocol 4.1
export function masterTimeoutFor(settings: Settings, ttl: number): number {
  return Math.min(settings.masterTimeout, ttl / 4);
}

export function resolveFlag(option: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw new RedlockConfigError(option, value, 'must be true or false');
  return value;
}

function checkTtl(option: string, ttl: number, maxTtl: number): void {
  if (ttl > maxTtl) {
    throw new RedlockConfigError(
      option,
      ttl,
      `must be at most maxTtl, which is ${maxTtl} ms: raise maxTtl for the module`,
    );
  }
}

function resolveMaxHold(option: string, value: Duration, ttl: number): number {
  const maxHold = parseDuration(option, value, 1);
  if (maxHold < ttl) throw new RedlockConfigError(option, value, `must be at least the ttl, which is ${ttl} ms`);
  return maxHold;
}

function resolveMinHold(option: string, settings: Settings, value: Duration, maxHold: number): number {
  const minHold = parseDuration(option, value, 0);
  if (minHold > maxHold) throw new RedlockConfigError(option, value, `must be at most maxHold, which is ${maxHold} ms`);
  if (minHold > settings.maxTtl) {
    const advice = `must be at most maxTtl, which is ${settings.maxTtl} ms: raise maxTtl for the module`;
    throw new RedlockConfigError(option, value, advice);
  }
  return minHold;
}

const EXCLUSIVE: Pick<CallSettings, 'isShared' | 'permits'> = Object.freeze({ isShared: false, permits: undefined });

function resolveSharing(at: (name: string) => string, options: AcquireOptions): typeof EXCLUSIVE {
  const { mode = 'exclusive', permits, minHold } = options;
  if (mode === 'exclusive' && permits === undefined) return EXCLUSIVE;
  if (!['exclusive', 'shared'].includes(mode)) {
    throw new RedlockConfigError(at('mode'), mode, `must be 'exclusive' or 'shared'`);
  }
  const isShared = mode === 'shared';
  if (isShared && minHold !== undefined) {
    throw new RedlockConfigError(at('minHold'), minHold, `cannot be given with mode: 'shared'`);
  }
  if (permits === undefined) return { isShared, permits };
  if (isShared) throw new RedlockConfigError(at('permits'), permits, `cannot be given with mode: 'shared'`);
  return { isShared, permits: resolvePermits(at('permits'), permits) };
}

export function resolvePermits(option: string, permits: unknown): number {
  if (typeof permits === 'number' && Number.isInteger(permits) && permits >= 1 && permits <= MAX_PERMITS) {
    return permits;
  }
  throw new RedlockConfigError(option, permits, `must be an integer from 1 to ${MAX_PERMITS}`);
}

function resolveMasterTimeout(value: Duration | undefined, ttl: number): number {
  if (value === undefined) return DEFAULT_MASTER_TIMEOUT;
  const timeout = parseDuration('masterTimeout', value, 1, MAX_DURATION);
  if (timeout > ttl / 4) {
    throw new RedlockConfigError('masterTimeout', value, `must be at most a quarter of the ttl, which is ${ttl} ms`);
  }
  return timeout;
}

function resolveInstance(value: unknown): string {
  if (value === undefined) return DEFAULT_INSTANCE;
  if (typeof value === 'string' && INSTANCE.test(value)) return value;
  throw new RedlockConfigError('instance', value, 'must be 1 to 100 printable ASCII characters without spaces');
}

function resolveDriftFactor(value: unknown): number {
  if (typeof value !== 'number' || !(value >= 0 && value <= MAX_DRIFT_FACTOR)) {
    throw new RedlockConfigError('driftFactor', value, `must be a number from 0 to ${MAX_DRIFT_FACTOR}`);
  }
  return value;
}

function resolveSignal(option: string, value: unknown): AbortSignal | undefined {
  if (value === undefined || isSignal(value)) return value;
  throw new RedlockConfigError(option, value, 'must be an AbortSignal');
}

// An object that merely inherits from a signal passes `instanceof`, but throws when `aborted` is read.
function isSignal(value: unknown): value is AbortSignal {
  try {
    return value instanceof AbortSignal && typeof value.aborted === 'boolean';
  } catch {
    return false;
  }
}
