/**
 * Fenced writes: the late write of a paused holder cannot commit. For PostgreSQL, MySQL, MariaDB and SQLite.
 *
 * @packageDocumentation
 */
export {
  fence,
  type FenceOptions,
  type FenceQuery,
  fenceSync,
  type SyncDatabase,
  type SyncStatement,
} from './fence.js';
export { type FenceDialect, fenceMigration, fenceStatement, type FenceStatement, StaleTokenError } from './dialects.js';
