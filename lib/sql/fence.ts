import type { Lock } from '../index.js';
import { schema } from '../internal.js';
import {
  dialectOf,
  type FenceDialect,
  type FenceRow,
  fenceRowsOf,
  FENCES,
  misuse,
  NESTED_BEGIN,
  ranOutside,
  rowsOf,
  type Run,
  says,
  statementOf,
} from './dialects.js';

/**
 * Sends a statement in the transaction that is to be fenced, and returns what the driver returns. The parameters are `$1`,
 * `$2` on PostgreSQL, once each and in order, and `?` elsewhere.
 */
export type FenceQuery = (sql: string, params: string[]) => unknown;

/** Options of {@link fence}. */
export interface FenceOptions {
  /**
   * The database. Otherwise its version is asked for first, which takes a round trip.
   * @default as the database answers
   */
  readonly dialect?: FenceDialect;
  /**
   * On PostgreSQL, fence inside a savepoint, too. The fence lasts as long as the savepoint is not rolled back. MySQL and
   * SQLite do not show savepoints, and never refuse.
   * @default false
   */
  readonly allowSavepoint?: boolean;
}

/** A connection of better-sqlite3, `node:sqlite` or libsql. */
export interface SyncDatabase {
  /** Runs a statement. */
  exec(sql: string): unknown;
  /** Prepares a statement. */
  prepare(sql: string): SyncStatement;
}

/** A statement of a {@link SyncDatabase}. */
export interface SyncStatement {
  /** Runs the statement, and returns its rows. */
  all(...params: string[]): unknown[];
}

const FENCE_OPTIONS = {
  dialect: schema.optional(
    schema.only<FenceDialect>("'postgres', 'mysql' or 'sqlite'", (value) =>
      Object.hasOwn(FENCES, value as PropertyKey),
    ),
  ),
  allowSavepoint: schema.optional(schema.flag, false),
} satisfies schema.TableOf<FenceOptions>;

const queryFunction = schema.method<FenceQuery>('a function that sends a statement in the transaction');

/**
 * Fences a transaction: from here on, no transaction that was fenced by an earlier holder of the lock's resources commits
 * while this one is open, and none ever does when this one has committed. Waits for such a transaction that is open.
 *
 * Make it the first statement of every transaction under the lock, also of one that only reads, and read afterwards. A
 * transaction under several locks fences all of them in one call. The table is that of {@link fenceMigration}.
 *
 * ```ts
 * await locks.withLock('stock:teapot', async (lock) => {
 *   await lock.fencingToken(); // before the transaction begins
 *   await database.transaction(async (tx) => {
 *     await fence(lock, (sql, params) => tx.query(sql, params));
 *   });
 * });
 * ```
 *
 * @param lock an exclusive lock or a permit whose `fencingToken()` has been awaited, or all those of the transaction
 * @param query sends a statement in the transaction, on its connection
 * @throws {LockLostError} unless the lock is held now
 * @throws {StaleTokenError} if a later holder has fenced before: let the transaction roll back
 * @throws {RedlockConfigError} if an argument is invalid, or `query` does not send to a transaction, or sends to one
 *   inside a savepoint or, on MySQL, to one that has read before; the database is not one that locks rows, or has no table
 * @throws the error of the driver, for example `40001` or `40P01`: run the whole transaction again
 * @see https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
 */
export async function fence(
  lock: Lock | readonly Lock[],
  query: FenceQuery,
  options: FenceOptions = {},
): Promise<void> {
  const { dialect, allowSavepoint } = schema.readOptions('fence', options, FENCE_OPTIONS);
  const send = queryFunction('query', query);
  const rows = fenceRowsOf(lock);
  const run: Run = async (sql, params = []) => {
    try {
      return rowsOf(await send(sql.trim(), params));
    } catch (error) {
      throw missing(rows, error);
    }
  };
  await FENCES[dialect ?? (await dialectOf(rows, run))](rows, run, { allowSavepoint });
}

/**
 * {@link fence} for SQLite drivers whose transactions are synchronous.
 *
 * @param lock an exclusive lock or a permit whose `fencingToken()` has been awaited, or all those of the transaction
 * @param database the connection, inside its transaction
 * @throws {LockLostError} unless the lock is held now
 * @throws {StaleTokenError} if a later holder has fenced before: let the transaction roll back
 * @throws {RedlockConfigError} if an argument is invalid, no transaction is open, or there is no table
 * @throws the error of the driver, for example `database is locked`: run the whole transaction again
 */
export function fenceSync(lock: Lock | readonly Lock[], database: SyncDatabase): void {
  const rows = fenceRowsOf(lock);
  if (isOutside(database)) throw ranOutside(rows.map(({ resource }) => resource));
  const { sql, params, check } = statementOf(rows);
  try {
    check(database.prepare(sql).all(...params));
  } catch (error) {
    throw missing(rows, error);
  }
}

function isOutside(database: SyncDatabase): boolean {
  try {
    database.exec('BEGIN');
  } catch (error) {
    if (says(error, NESTED_BEGIN)) return false;
    throw error;
  }
  database.exec('ROLLBACK');
  return true;
}

function missing(rows: readonly FenceRow[], error: unknown): unknown {
  const resources = rows.map(({ resource }) => resource);
  if (!says(error, /redlock_fence["'`]? (?:does not|doesn't) exist|no such table: \S*redlock_fence/i)) return error;
  return misuse('query', resources, 'found no table redlock_fence: run `fenceMigration` in a migration', error);
}
