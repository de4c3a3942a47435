import { REVOKED as REVOKED_TOKEN, TOKEN_LENGTH } from '../../redlock/holder.js';
import { WRITER as WRITER_SUFFIX } from '../../settings/keyspace.js';
import { RESERVED, SHARED_MARK } from '../../masters/master.interface.js';
import * as WORDS from './replies.js';
import { GATE_MARK, INFO_FIELDS, type InfoField, SECTIONS } from '../replies.js';

// The names in capitals that the scripts may use, each a number or the text of an expression in Lua.

export * from './constants.js';
export { WRITER_LIFE, MAX_SHARED_HOLDERS, RESERVATION_SCALE } from '../../masters/master.interface.js';

export const { FREE } = WORDS;
export const ALL_FREE = quoted(WORDS.ALL_FREE);
export const FREE_WITH_WAITERS = quoted(WORDS.FREE_WITH_WAITERS);
export const HELD = quoted(WORDS.HELD);
export const GONE = quoted(WORDS.GONE);
export const GONE_WITH_WAITERS = quoted(WORDS.GONE_WITH_WAITERS);
export const DRAWN = quoted(WORDS.DRAWN);
export const PICKED = quoted(WORDS.PICKED);
export const NOT_THE_HOLDER = quoted(WORDS.NOT_THE_HOLDER);
export const QUARANTINED = quoted(WORDS.QUARANTINED);
export const CLAIMED = quoted(WORDS.CLAIMED);
export const OTHER_MARKER = quoted(WORDS.OTHER_MARKER);
export const FOREIGN_ENTRY = quoted(WORDS.FOREIGN_ENTRY);
// Begins the value of a key that is reserved for a waiter. The name of the waiter follows.
export const RESERVED_FOR = quoted(RESERVED);
// Begins a member of a shared key, whose token follows, and a member of a queue that waits for a shared key.
export const SHARED = quoted(SHARED_MARK);
// Ends the name of a queue whose writer key it is.
export const WRITER = quoted(WRITER_SUFFIX);
export const REVOKED = quoted(REVOKED_TOKEN);
export const AT_GATE = quoted(GATE_MARK);
// What follows the secret part of a token: see `redlock/holder.ts`. Patterns in Lua have no count.
export const HOLDER_PATTERN = `'^${'[%w_-]'.repeat(TOKEN_LENGTH)}(@[0-9a-z]+@[!-~]+)$'`;
// Where a report has them: its first value is the time.
export const RUN_INDEX = indexOf('run_id');
export const ROLE_INDEX = indexOf('role');
export const MODE_INDEXES = list([indexOf('redis_mode'), indexOf('server_mode')].map(String));
export const INFO_SECTIONS = list(
  Object.entries(SECTIONS).map(([section, fields]) => list([quoted(section), list(fields.map(quoted))])),
);

function indexOf(field: InfoField): number {
  return INFO_FIELDS.indexOf(field) + 2;
}

function quoted(text: string): string {
  return `'${text.replace('\0', '\\0')}'`;
}

function list(items: readonly string[]): string {
  return `{ ${items.join(', ')} }`;
}
