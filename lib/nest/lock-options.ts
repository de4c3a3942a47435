import type { LockNotAcquiredError } from '../waiting/lock-not-acquired.error.js';
import { RedlockConfigError } from '../settings/config.error.js';
import { resolveResources } from '../settings/resources.js';
import type { Duration } from '../settings/duration.js';
import type { AcquireOptions } from '../settings/options.js';
import { ACQUIRE_OPTIONS } from '../settings/settings.js';
import { flag, only, optional, type TableOf, text } from '../settings/table.js';

// As in other libraries, in formats and in routes: `{0}`, `${id}`, `#{id}`, `%s`, `:id`, and `/:name`. An encoded character,
// such as `%dc`, is none.
const PLACEHOLDER = /[$#]?\{(\w+)\}|(?<=[:/]):(\w+)|:(id)\b|%[sdijoO](?!\w)/;

// `parameter`: the type of what a key function would receive instead of the arguments of the method, for error
// messages.
export function resolveFixedKey(where: string, key: unknown, parameter?: string): readonly string[] {
  const names = resolveResources(`${where}: key`, key);
  for (const name of names) refusePlaceholder(where, name, parameter);
  return names;
}

export function checkArguments(where: string, key: unknown, surplus: readonly unknown[]): void {
  if (typeof key === 'function' && /^class\b/.test(Function.prototype.toString.call(key))) {
    throw new RedlockConfigError(`${where}: key`, key, 'must be a name, an array of names or a function, not a class');
  }
  if (surplus.length === 0) return;
  const requirement = `takes a key and options, and no third argument: write { ttl: '10s', wait: '2s' }`;
  throw new RedlockConfigError(where, surplus[0], requirement);
}

function refusePlaceholder(where: string, name: string, parameter: string | undefined): void {
  const [placeholder, braced, segment, id] = PLACEHOLDER.exec(name) ?? [];
  if (placeholder === undefined) return;
  const word = braced || segment || id || (placeholder.startsWith('%') ? 'id' : '');
  const argument = /^\d/.test(word) ? `argument${word}` : word;
  const colon = id === undefined ? '' : ':';
  const written = name.replace(placeholder, `${colon}\${${parameter === undefined ? argument : '...'}}`);
  const head = parameter === undefined ? `(${argument}: string)` : `(${parameter})`;
  throw new RedlockConfigError(
    `${where}: key`,
    name,
    `must not contain ${placeholder}, which nothing replaces: write a function, such as ${head} => \`${written}\``,
  );
}

// Has no prototype, so that a property added to `Object.prototype` is not read as an option.
const NO_OPTIONS: AcquireOptions = Object.freeze(Object.create(null) as object);

/** One resource, or several that are acquired together or not at all. */
export type LockResource = string | readonly string[];

/** Options of `LockService.withLock`. */
export interface WithLockOptions extends AcquireOptions {
  /**
   * Whether a nested call runs inside the lock of its call chain. Without this option such a call fails
   * at once with a `LockReentryError`, instead of waiting for itself.
   *
   * The lock excludes other call chains. It does not separate the calls of this one: calls that run in parallel, for
   * example in a `Promise.all`, are inside the lock at the same time. Run them one after the other, or let each acquire
   * a lock under its own name.
   * @default false
   */
  reentrant?: boolean;
}

// Users give a ttl, or options that may contain one. A value that is not an object counts as a ttl.
export function optionsOf<Options extends AcquireOptions>(given: Duration | Options | undefined): Options {
  if (given === undefined) return NO_OPTIONS as Options;
  return typeof given === 'object' && (given as Options | null) !== null ? given : ({ ttl: given } as Options);
}

interface DeclaredLockOptions extends Omit<WithLockOptions, 'signal'> {
  /** Name of the lock service to use. For a module that is registered with a `name`. */
  service?: string;
}

/** Options of `@WithLock`. */
export interface LockedMethodOptions extends DeclaredLockOptions {
  /**
   * What happens if another holder keeps the resource until `wait` ends. `'throw'`: the call fails with a
   * `LockNotAcquiredError`. `'skip'`: the call resolves to `undefined`, and `wait` defaults to `0`; for methods whose
   * result may be `undefined`. A function: the call resolves to the result of the function. An outage always throws.
   * @default 'throw'
   */
  onLocked?: 'throw' | 'skip' | ((error: LockNotAcquiredError) => unknown);
}

/** The response of a handler whose resource another holder keeps. */
export interface LockedStatus {
  /** HTTP status, from 200 to 599. */
  readonly status: number;
}

/** Options of `LockInterceptor`. */
export interface LockInterceptorOptions extends DeclaredLockOptions {
  /**
   * What happens if another holder keeps the resource until `wait` ends. `'throw'`: the request fails with a
   * `LockNotAcquiredError`. `{ status }`: the response has this HTTP status and no body, and `wait` defaults to `0`; an
   * `@HttpCode` of the handler takes precedence, and a handler of another protocol than HTTP gives `undefined`. A
   * function: the handler gives the result of the function, which may be an Observable. An outage always throws.
   * @default 'throw'
   */
  onLocked?: 'throw' | LockedStatus | ((error: LockNotAcquiredError) => unknown);
}

export const WITH_LOCK_OPTIONS = {
  ...ACQUIRE_OPTIONS,
  reentrant: optional(flag, false),
} satisfies TableOf<WithLockOptions>;

const { signal: _signal, ...DECLARED_OPTIONS } = WITH_LOCK_OPTIONS;

export const METHOD_OPTIONS = {
  ...DECLARED_OPTIONS,
  onLocked: optional(
    only(
      `'throw', 'skip' or a function`,
      (value) => ['throw', 'skip'].includes(value as string) || typeof value === 'function',
    ),
    'throw',
  ),
  service: optional(text),
} satisfies TableOf<LockedMethodOptions>;
