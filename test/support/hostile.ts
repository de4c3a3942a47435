import { fc } from './properties.js';

/** Parts of which names are made that try to be something else: prefixes, names of our own, commands, patterns. */
const PARTS = [
  ...['lock', 'app', 'jobs', 'key', 'queue', 'wake', 'incarnation', 'fences', 'reserved for ', ':', '::'],
  ...['*', '?', '[a-z]', '{tag}', '{', '}', '\\', '/', '../', ' ', '\n', '\r\n', '\t', '%00', '%s', '"', "'"],
  ...['$3\r\nfoo\r\n', '*1\r\n$8\r\nFLUSHALL\r\n', 'EVAL', 'ARGV[1]', '\x1b[31m', '\x7f', '\x9b', '\u2028', '\u202e'],
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'prototype', 'null', 'undefined', 'NaN', '0'],
  ...['é', 'e\u0301', '\u{1f512}', '\u{1f468}\u200d\u{1f469}', '\ufffd', '\ufeff', 'ß', 'ẞ', 'İ', 'ﬀ'],
];

/** What no name may contain. */
const FORBIDDEN = ['\0', '\0key:', '\0queue:', '\ud800', '\udbff', '\udc00', '\udfff'];

/** Names that can be locked, however odd. */
export const names = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.array(fc.constantFrom(...PARTS), { minLength: 1, maxLength: 5 }).map((all) => all.join('')),
  },
  fc.constantFrom(...PARTS),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }).filter((text) => !text.includes('\0')),
);

/** Names of which some cannot be locked. */
export const anyNames = fc.oneof(
  names,
  fc.array(fc.constantFrom(...PARTS, ...FORBIDDEN), { maxLength: 5 }).map((all) => all.join('')),
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 10 }).map((units) => String.fromCharCode(...units)),
);

/** Prefixes of which many begin with each other. */
export const prefixes = fc.oneof(
  fc.array(fc.constantFrom('app', 'jobs', ':', 'key', '{a}'), { maxLength: 4 }).map((all) => all.join('')),
  names,
);
