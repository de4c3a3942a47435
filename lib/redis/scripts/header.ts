import { REVOKED as REVOKED_TOKEN, TOKEN_LENGTH } from '../../core/holder.js';
import { BARRIER as BARRIER_SUFFIX } from '../../core/keyspace.js';
import { RESERVED, SHARED_MARK } from '../../core/master.interface.js';
import { ANNOUNCED, MARKER_FIELDS as FIELDS } from '../guard/marker.js';
import { SECTIONS } from '../replies.js';

// The names in capitals that the scripts may use, each a number or the text of an expression in Lua.

export * from './constants.js';
export { BARRIER_LIFE, MAX_SHARED_HOLDERS, RESERVATION_LIFE } from '../../core/master.interface.js';
export { EXPIRY_RESOLUTION } from '../../core/settings/settings.js';

// Begins the value of a key that is reserved for a waiter. The name of the waiter follows.
export const RESERVED_FOR = quoted(RESERVED);
// Begins a member of a shared key, whose token follows, and a member of a queue that waits for a shared key.
export const SHARED = quoted(SHARED_MARK);
// Ends the name of a queue whose barrier it is.
export const BARRIER = quoted(BARRIER_SUFFIX);
export const REVOKED = quoted(REVOKED_TOKEN);
// What follows the secret part of a token: see `core/holder.ts`. Patterns in Lua have no count.
export const HOLDER_PATTERN = `'^${'[%w_-]'.repeat(TOKEN_LENGTH)}(@[0-9a-z]+@[!-~]+)$'`;
export const MARKER_FIELDS = list(FIELDS.map(quoted));
export const ANNOUNCED_PLACES = list(ANNOUNCED.map((field) => String(FIELDS.indexOf(field) + 1)));
export const INFO_SECTIONS = list(
  Object.entries(SECTIONS).map(([section, fields]) => list([quoted(section), list(fields.map(quoted))])),
);

function quoted(text: string): string {
  return `'${text.replace('\0', '\\0')}'`;
}

function list(items: readonly string[]): string {
  return `{ ${items.join(', ')} }`;
}
