import { RedlockConfigError } from '../errors.js';

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
