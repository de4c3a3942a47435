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
export { type FenceDialect, fenceStatement, type FenceStatement } from './dialects.js';
export { StaleTokenError } from './fence-row.js';
export { fenceMigration } from './migrations.js';
