import { RedlockConfigError } from '../core/errors.js';
import { resolveResources } from '../core/settings/resources.js';

/** A placeholder as in other libraries and in routes: `{0}`, `${id}`, `#{id}`, `:id`, and `/:name`. */
const PLACEHOLDER = /[$#]?\{(\w+)\}|(?<=[:/]):(\w+)|:(id)\b/;

/**
 * Validates a key that is written in the source.
 *
 * @param where names the decorator or the interceptor in error messages
 * @param parameter the type of what the function to write instead receives; default: an argument of the method
 * @throws {RedlockConfigError} unless it is one name or a non-empty array of names, without placeholders
 */
export function resolveFixedKey(where: string, key: unknown, parameter?: string): readonly string[] {
  const names = resolveResources(`${where}: key`, key);
  for (const name of names) refusePlaceholder(where, name, parameter);
  return names;
}

/** @throws {RedlockConfigError} for what only looks like a key function, and for arguments beyond the options */
export function checkArguments(where: string, key: unknown, surplus: readonly unknown[]): void {
  if (typeof key === 'function' && /^class\b/.test(Function.prototype.toString.call(key))) {
    throw new RedlockConfigError(`${where}: key`, key, 'must be a name, an array of names or a function, not a class');
  }
  if (surplus.length === 0) return;
  const requirement = `takes a key and options, and no third argument: write { ttl: '10s', wait: '2s' }`;
  throw new RedlockConfigError(where, surplus[0], requirement);
}

/** Validates a key that a function has returned. Like {@link resolveFixedKey}, but braces and colons are allowed. */
export function resolveComputedKey(where: string, key: unknown): readonly string[] {
  return resolveResources(`${where}: key`, key);
}

function refusePlaceholder(where: string, name: string, parameter: string | undefined): void {
  const [placeholder, braced, segment, id] = PLACEHOLDER.exec(name) ?? [];
  if (placeholder === undefined) return;
  const word = braced || segment || id || '';
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
