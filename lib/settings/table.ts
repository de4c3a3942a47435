import { RedlockConfigError } from './config.error.js';
import { MAX_DURATION, parseDuration } from './duration.js';

export { MAX_DURATION };

// Returns the value of an option, complete and validated, or throws a `RedlockConfigError`.
export interface Parser<T> {
  (option: string, value: unknown): T;
  // Type and bounds, as docs/options.md shows them.
  readonly kind: string;
}

// By the names of the options. Its type is checked against the public interface: `satisfies TableOf<AcquireOptions>`.
export type Table = Readonly<Record<string, Parser<unknown>>>;
export type TableOf<Options> = { readonly [Name in keyof Required<Options>]: Parser<unknown> };
export type ValuesOf<T extends Table> = { -readonly [Name in keyof T]: ReturnType<T[Name]> };

export function parser<T>(kind: string, parse: (option: string, value: unknown) => T): Parser<T> {
  return Object.assign(parse, { kind });
}

// `kind` completes "must be". A value of another kind is converted to `undefined`.
export function from<T>(kind: string, convert: (value: unknown) => T | undefined): Parser<T> {
  return parser(kind, (option, value) => {
    const converted = convert(value);
    if (converted !== undefined) return converted;
    throw new RedlockConfigError(option, value, `must be ${kind}`);
  });
}

export function only<T>(kind: string, accepts: (value: unknown) => boolean): Parser<T> {
  return from(kind, (value) => (accepts(value) ? (value as T) : undefined));
}

export function list<T>(kind: string, parse: (option: string, value: unknown) => T, min = 0): Parser<readonly T[]> {
  const array = only<unknown[]>(kind, (value) => Array.isArray(value) && value.length >= min);
  // Not by `map`, which skips the holes of an array.
  return parser(kind, (option, value) =>
    Array.from(array(option, value), (item, index) => parse(`${option}[${index}]`, item)),
  );
}

// A default replaces only `undefined`: `null` is a value.
export function optional<T>(parse: Parser<T>): Parser<T | undefined>;
export function optional<T>(parse: Parser<T>, fallback: T): Parser<T>;
export function optional<T>(parse: Parser<T>, fallback?: T): Parser<T | undefined> {
  return parser(parse.kind, (option, value) => (value === undefined ? fallback : parse(option, value)));
}

export const flag = only<boolean>('true or false', (value) => typeof value === 'boolean');
export const text = only<string>('a non-empty string', (value) => typeof value === 'string' && value !== '');

// In milliseconds. `kind` replaces the bounds where another option is one.
export function duration(min: number, bounds = `from ${min} ms`, max = MAX_DURATION): Parser<number> {
  return parser(`duration, ${bounds}`, (option, value) => parseDuration(option, value, min, max));
}

export function number(min: number, max: number): Parser<number> {
  return only(`a number from ${min} to ${max}`, (value) => typeof value === 'number' && value >= min && value <= max);
}

export function integer(min: number, max: number, kind = 'an integer'): Parser<number> {
  const isWithin = (value: number): boolean => Number.isInteger(value) && value >= min && value <= max;
  return only(`${kind} from ${min} to ${max}`, (value) => isWithin(value as number));
}

export function oneOf<const T extends string>(...values: readonly T[]): Parser<T> {
  const names = values.map((value) => `'${value}'`);
  return only(`${names.slice(0, -1).join(', ')} or ${names.at(-1)}`, (value) => values.includes(value as T));
}

export function method<T>(kind: string): Parser<T> {
  return only(kind, (value) => typeof value === 'function');
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

export function hasMethods(value: unknown, methods: readonly string[]): value is object {
  try {
    return isObject(value) && methods.every((method) => typeof Reflect.get(value, method) === 'function');
  } catch {
    return false;
  }
}

export function objectWith<T extends object>(methods: readonly (keyof T & string)[]): Parser<T> {
  const kind = `an object with the method${methods.length > 1 ? 's' : ''} ${methods.join(', ')}`;
  return only(kind, (value) => hasMethods(value, methods));
}

// `where` is put before the names of the options in messages.
export function parseOptions<T extends Table>(table: T, options: object, where?: string): ValuesOf<T> {
  const values: Record<string, unknown> = {};
  for (const [name, parse] of Object.entries(table)) {
    values[name] = parse(where === undefined ? name : `${where}: ${name}`, Reflect.get(options, name));
  }
  return values as ValuesOf<T>;
}

// Refuses unknown options, too.
export function readOptions<T extends Table>(where: string, options: unknown, table: T): ValuesOf<T> {
  checkOptionNames(where, options, table);
  return parseOptions(table, options, where === 'options' ? undefined : where);
}

const PLAIN = ['[object Object]', '[object Module]'];

// Names of other libraries, or that come to mind first, for options of this one.
const SYNONYMS: Readonly<Record<string, RegExp>> = {
  masters: /^(?:servers|nodes|instances|clients?|redis|connections|urls?|hosts?)$/,
  ttl: /^(?:duration|leaseTime|expiry|expires)$/,
  wait: /^(?:timeout|waitTime|waitTimeout|acquireTimeout)$/,
  extend: /^(?:autoExtend|renew)$/,
  timeZone: /^tz$/,
  mode: /^(?:shared|exclusive)$/,
  permits: /^(?:limit|max|concurrency|slots)$/,
};

// Of other libraries: attempts take no number and no pause here.
const RETRIES = /^(?:retries|retry(?:Count|Delay|Interval|Jitter))$/;

// The message omits the value of an unknown option, which could be a password.
export function checkOptionNames(where: string, given: unknown, table: object): asserts given is object {
  try {
    checkNames(where, given, table);
  } catch (error) {
    throw error instanceof RedlockConfigError ? error : notOptions(where, given);
  }
}

// Reads every option once, so that a getter that throws does so here.
function checkNames(where: string, given: unknown, table: object): void {
  if (typeof given !== 'object' || given === null || !isPlain(given)) throw notOptions(where, given);
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(table, name)) {
      const meant = suggestion(name, Object.keys(table));
      throw new RedlockConfigError(where, name, `may hold known options only (${meant})`);
    }
    Reflect.get(given, name);
  }
  if (inheritsNothing(given)) return;
  // The options are copied later, and a copy lacks inherited properties.
  const inherited = Object.keys(table).find((name) => name in given && !Object.hasOwn(given, name));
  if (inherited !== undefined) throw new RedlockConfigError(where, inherited, 'must not inherit an option');
}

// `given` is a literal and no library has added a property to all objects. Most options are so, at each call.
function inheritsNothing(given: object): boolean {
  if (Object.getPrototypeOf(given) !== Object.prototype) return false;
  for (const name in given) if (!Object.hasOwn(given, name)) return false;
  return true;
}

// Instances of user-defined classes may carry options; instances of built-in classes do not.
function isPlain(given: object): boolean {
  return PLAIN.includes(Object.prototype.toString.call(given));
}

function notOptions(where: string, given: unknown): RedlockConfigError {
  return new RedlockConfigError(where, given, 'must be an object of options that can be read');
}

function suggestion(name: string, known: readonly string[]): string {
  const meant = Object.keys(SYNONYMS).find((option) => SYNONYMS[option]?.test(name));
  if (meant !== undefined) return known.includes(meant) ? `did you mean ${meant}?` : known.join(', ');
  if (RETRIES.test(name) && known.includes('wait')) return "wait: '5s' bounds the time of all attempts";
  const [nearest] = known
    // Names whose lengths differ more are not similar, and a long name would take long to compare.
    .filter((candidate) => Math.abs(candidate.length - name.length) <= candidate.length)
    .map((candidate) => ({ candidate, distance: editDistance(name.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ candidate, distance }) => distance <= Math.max(2, candidate.length / 3))
    .sort((a, b) => a.distance - b.distance);
  return nearest ? `did you mean ${nearest.candidate}?` : known.join(', ');
}

// Levenshtein distance.
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
