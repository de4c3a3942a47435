import { RedlockConfigError } from './config.error.js';
import { showNames } from '../redlock/names.js';
import { NUL } from './keyspace.js';
import { SHARED_MARK } from '../masters/master.interface.js';
import { parser } from './table.js';

// All names go into one script call, which blocks the server. For this many, it takes 2 ms to acquire or extend them,
// and 4 ms to release them if a process waits for each.
// Protocol 4.8
export const MAX_NAMES = 512;
// Of all names together, in UTF-16 code units. A server takes 1 ms to decode this many ASCII characters, which are sent
// twice (keys and queues), and 3 ms for control characters, which JSON makes six times as long.
export const MAX_CHARACTERS = 2 ** 16;
// It is sent with each name.
const LONGEST_PREFIX = 128;
// What a missing value becomes in a template string: a whole part of the name. Other parts may be texts in which the word is meant.
const SEPARATOR = /[#$&()*,/:;<=>@[\\\]^{|}~]/;
const MISSING_PART = new RegExp(`(?:^|${SEPARATOR.source})\\s*undefined\\s*(?:$|${SEPARATOR.source})`);
// Points and dashes separate the parts of a name that has no other separator.
const MISSING_WORD = /(?:^|[.-])undefined(?:$|[.-])/;
const NO_NAME = '[object Object]';

export function resolveResources(option: string, value: unknown): readonly string[] {
  if (typeof value === 'string' && value !== '') {
    checkNames(option, [value]);
    return [value];
  }
  const names = listOf(option, value);
  const culprit = names.findIndex((name) => typeof name !== 'string' || name === '');
  if (names.length === 0 || culprit >= 0) throw noNames(option, names.length === 0 ? value : names[culprit]);
  const resources = names as string[];
  checkNames(option, resources);
  return [...new Set(resources)];
}

// Of a request for one of all permits of a name, in characters: longer ones keep a process and its masters busy.
const MAX_PERMIT_CHARACTERS = 2 ** 19;

// Permits of several resources could not be taken together or not at all. `where`: the method, for the message.
export function checkPermits(resources: readonly string[], permits: number | undefined, where?: string): void {
  if (permits === undefined) return;
  const option = where === undefined ? 'permits' : `${where}: permits`;
  const [{ length } = ''] = resources;
  if (resources.length < 2) {
    if (length * permits <= MAX_PERMIT_CHARACTERS) return;
    const max = Math.floor(MAX_PERMIT_CHARACTERS / length);
    throw new RedlockConfigError(option, permits, `must be at most ${max} for a name of ${length} characters`);
  }
  const requirement = 'belong to one resource, not to several';
  const message = `${option} ${requirement}: ${showNames(resources)}. Give one name, or leave out \`permits\``;
  throw new RedlockConfigError(option, permits, requirement, message);
}

export const keyPrefix = parser<string>(`at most ${LONGEST_PREFIX} characters, no NUL`, (option, value) => {
  if (typeof value !== 'string') throw new RedlockConfigError(option, value, 'must be a string');
  if (value.length > LONGEST_PREFIX) {
    const requirement = `must have at most ${LONGEST_PREFIX} characters, not ${value.length}`;
    throw new RedlockConfigError(option, value, requirement);
  }
  // The names of other processes begin with the prefix.
  if (value.startsWith(SHARED_MARK)) {
    throw new RedlockConfigError(option, value, `must not begin with '${SHARED_MARK}', which marks shared holders`);
  }
  checkText(option, value);
  return value;
});

// Item by item, because arrays may have holes and iterators of their own.
function listOf(option: string, value: unknown): readonly unknown[] {
  try {
    if (!Array.isArray(value)) return [value];
    if (value.length <= MAX_NAMES) return Array.from({ length: value.length }, (_, i) => (value as unknown[])[i]);
  } catch {
    throw noNames(option, value);
  }
  throw new RedlockConfigError(option, value, `must be at most ${MAX_NAMES} names`);
}

function checkNames(option: string, names: readonly string[]): void {
  let length = 0;
  for (const name of names) length += name.length;
  if (length > MAX_CHARACTERS) {
    throw new RedlockConfigError(option, names[0], `must have at most ${MAX_CHARACTERS} characters, not ${length}`);
  }
  for (const name of names) {
    checkText(option, name);
    refuseUnfilled(option, name);
  }
}

// All calls with a missing value would share one lock.
function refuseUnfilled(option: string, name: string): void {
  // A search costs a tenth of an expression, and nearly no name contains the words.
  if (name.includes(NO_NAME)) {
    throw new RedlockConfigError(option, name, `must not contain ${NO_NAME}: name one of its properties`);
  }
  if (!name.includes('undefined')) return;
  if (!(SEPARATOR.test(name) ? MISSING_PART : MISSING_WORD).test(name)) return;
  const requirement =
    'must not contain undefined: a value that the name is made of is missing (if the word is meant, write JSON.stringify(value))';
  throw new RedlockConfigError(option, name, requirement);
}

function noNames(option: string, value: unknown): RedlockConfigError {
  return new RedlockConfigError(option, value, 'must be a non-empty string or a non-empty array of them');
}

function checkText(option: string, text: string): void {
  if (text.includes(NUL)) {
    throw new RedlockConfigError(option, text, 'must not contain a NUL character, which marks names of our own');
  }
  // UTF-8 has no lone surrogates and maps all of them to the same character: different names would share a lock.
  if (!text.isWellFormed()) {
    const requirement = 'must not contain half a surrogate pair, which no server could distinguish from another';
    throw new RedlockConfigError(option, text, requirement);
  }
}

interface Use {
  // The decorator, the class and the method, for messages.
  readonly method: string;
  readonly permits: number | undefined;
  readonly isShared: boolean;
}

export class FixedNames {
  private readonly uses = new Map<string, Use>();

  // Permits of a name and a lock of the same name do not exclude each other, which is never meant.
  add(resources: readonly string[], use: Use): void {
    checkPermits(resources, use.permits, use.method);
    for (const name of resources) {
      const other = this.uses.get(name) ?? use;
      this.uses.set(name, other);
      if (other.permits !== use.permits) throw mismatch(name, use, other);
    }
  }
}

function mismatch(name: string, use: Use, other: Use): RedlockConfigError {
  const named = showNames([name]);
  const requirement = `must be the same in all uses of ${named}`;
  const consequence =
    use.permits === undefined || other.permits === undefined
      ? 'permits and a lock of one name do not exclude each other'
      : `together they admit ${Math.max(use.permits, other.permits)} holders`;
  // A shared lock cannot be given permits.
  const remedy = [use, other].some(({ isShared }) => isShared)
    ? 'Give one of them another name'
    : 'Give both the same `permits`, or one of them another name';
  const message = `${use.method} ${verb(use)} ${named} and ${other.method} ${verb(other)} it: ${consequence}. ${remedy}`;
  return new RedlockConfigError(`${use.method}: permits`, use.permits, requirement, message);
}

function verb({ permits, isShared }: Use): string {
  if (permits === undefined) return isShared ? 'takes a shared lock on' : 'takes a lock on';
  return permits === 1 ? 'takes the only permit of' : `takes one of ${permits} permits of`;
}
