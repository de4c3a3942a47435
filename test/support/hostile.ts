import { inspect } from 'node:util';
import { fc } from './properties.js';

/** Parts of names that imitate something else: prefixes, internal names, commands, patterns. */
const PARTS = [
  ...['lock', 'app', 'jobs', 'key', 'queue', 'wake', 'run', 'fences', 'reserved for ', ':', '::'],
  ...['*', '?', '[a-z]', '{tag}', '{', '}', '\\', '/', '../', ' ', '\n', '\r\n', '\t', '%00', '%s', '"', "'"],
  ...['$3\r\nfoo\r\n', '*1\r\n$8\r\nFLUSHALL\r\n', 'EVAL', 'ARGV[1]', '\x1b[31m', '\x7f', '\x9b', '\u2028', '\u202e'],
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'prototype', 'null', 'undefinedness', 'NaN', '0'],
  ...['é', 'e\u0301', '\u{1f512}', '\u{1f468}\u200d\u{1f469}', '\ufffd', '\ufeff', 'ß', 'ẞ', 'İ', 'ﬀ'],
];

/** Sequences that no name may contain. */
const FORBIDDEN = ['undefined', '[object Object]', '\0', '\0key:', '\0queue:', '\ud800', '\udbff', '\udc00', '\udfff'];

/** Every character but half surrogates. The unit `binary` is the same, and lists all of them once per suite, for seconds. */
const character = fc.nat(0x10ffff - 0x800).map((n) => String.fromCodePoint(n < 0xd800 ? n : n + 0x800));

/** Names that can be locked, however odd they are. */
export const names = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.array(fc.constantFrom(...PARTS), { minLength: 1, maxLength: 5 }).map((all) => all.join('')),
  },
  fc.constantFrom(...PARTS),
  fc.string({ unit: character, minLength: 1, maxLength: 20 }).filter((text) => !text.includes('\0')),
);

/** Names, some of which cannot be locked. */
export const anyNames = fc.oneof(
  names,
  fc.array(fc.constantFrom(...PARTS, ...FORBIDDEN), { maxLength: 5 }).map((all) => all.join('')),
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 10 }).map((units) => String.fromCharCode(...units)),
);

/** Prefixes, many of which begin with one another. */
export const prefixes = fc.oneof(
  fc.array(fc.constantFrom('app', 'jobs', ':', 'key', '{a}'), { maxLength: 4 }).map((all) => all.join('')),
  names,
);

const throwing = (): never => {
  throw new TypeError('from inside');
};

const ODD: readonly unknown[] = [
  ...[NaN, Infinity, -Infinity, -0, -1, 0.5, 1e21, 2 ** 31, Number.MIN_VALUE, Number.MAX_SAFE_INTEGER + 2, 10n],
  ...['', ' ', '10', '1e3ms', '-5s', '0x10ms', '５s', '5s\n', '١s', `${'9'.repeat(1_000)}h`, '__proto__', '\ud800'],
  ...[new Date(10_000), { valueOf: () => 10_000 }, { toString: () => '10s' }, Symbol('10s'), () => 10_000],
  ...[new Proxy({}, { get: throwing }), new Proxy({}, { ownKeys: throwing }), new Proxy([], { get: throwing })],
  ...[Object.create(AbortSignal.prototype), { [Symbol.toPrimitive]: throwing }, AbortSignal.abort(), /x/, new Map()],
  ...[new Proxy({}, { getPrototypeOf: throwing, has: throwing }), Object.create(null), Object.freeze(['a'])],
];

/** A box around a value: some of the values run code when they are inspected, and fast-check inspects them. */
export interface Boxed {
  readonly value: unknown;
}

// Printing must not run that code either.
const boxed = (value: unknown): Boxed => ({ value, [fc.toStringMethod]: () => inspect(value) }) as Boxed;

/** Any value that a caller could pass as an option. */
export const anything: fc.Arbitrary<Boxed> = fc.oneof(
  fc
    .anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true, withSparseArray: true })
    .map(boxed),
  fc.anything({ withBoxedValues: true, withTypedArray: true, stringUnit: character }).map(boxed),
  fc.nat(ODD.length - 1).map((index) => boxed(ODD[index])),
);

/** Objects whose properties are `names` with arbitrary values, and occasionally a value that is no such object. */
export function optionObjects(names: readonly string[]): fc.Arbitrary<Boxed> {
  const name = fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...names) }, fc.constantFrom('toString', 'ttI', 'x'));
  const likely = fc.constantFrom(0, 50, 10_000, '5s', true).map(boxed);
  const entries = fc.array(fc.tuple(name, fc.oneof(anything, likely)), { maxLength: 3 });
  const makeFrom = (make: (options: object) => object): fc.Arbitrary<Boxed> =>
    entries.map((all) => boxed(make(Object.fromEntries(all.map(([option, { value }]) => [option, value])))));
  return fc.oneof(
    { weight: 4, arbitrary: makeFrom((options) => options) },
    makeFrom((options) => Object.freeze(options)),
    makeFrom((options) => Object.assign(Object.create(null) as object, options)),
    makeFrom((options) => Object.create(options) as object),
    makeFrom((options) => JSON.parse(`{"__proto__":${JSON.stringify(Object.keys(options))}}`) as object),
    name.map((option) => boxed(Object.defineProperty({}, option, { get: throwing, enumerable: true }))),
    anything,
  );
}
