import type { Lock } from '../core/lock.js';
import {
  escaped,
  type FenceRow,
  fenceRowsOf,
  misuse,
  ranOutside,
  refuse,
  type Row,
  rowsOf,
  type Run,
  says,
  unrecognized,
} from './fence-row.js';

/** The databases that `fence` knows. `mysql` is MariaDB, too. */
export type FenceDialect = 'postgres' | 'mysql' | 'sqlite';

interface FenceSettings {
  readonly allowSavepoint: boolean;
}

type Fence = (rows: readonly FenceRow[], run: Run, settings: FenceSettings) => Promise<void>;

// A stale token is an error of this statement itself, which has the stored one in its text: it aborts the transaction at once,
// so that its COMMIT rolls back, also where nothing awaits the fence or its refusal is swallowed, and no row stays locked.
// A row that is inserted or updated inside a savepoint has the number of the subtransaction, and not that of the transaction.
// Each parameter stands once and in order, so that `$1` can become `?`.
const POSTGRES_FENCE = `
  WITH f AS (
    INSERT INTO redlock_fence AS f (resource, token) VALUES ($1::text, $2::text::bigint)
    ON CONFLICT (resource) DO UPDATE SET token = CASE WHEN f.token <= EXCLUDED.token THEN EXCLUDED.token
      ELSE CAST('redlock: stale fencing token, the table has ' || f.token AS integer) END
    RETURNING token, xmin::text AS x
  )
  SELECT (SELECT token::text FROM f) AS fenced, (SELECT x FROM f) AS x, pg_current_xact_id()::text AS tx,
    (pg_current_xact_id()::text::numeric % 4294967296)::text AS top`;
const POSTGRES_STALE = /redlock: stale fencing token, the table has (\d+)/;
// Another transaction, or none: autocommit, or another connection of the pool. The setting, which ends with the transaction or
// the savepoint, is its number and, line by line, what it has fenced: `again` is what a savepoint does not undo.
const POSTGRES_CONFIRM = `
  WITH now AS (
    SELECT $1::text AS tx, $2::text AS line, string_to_array(current_setting('redlock.fence', true), chr(10)) AS lines
  ), before AS MATERIALIZED (
    SELECT line, CASE lines[1] WHEN tx THEN lines ELSE ARRAY[tx] END AS lines FROM now
  )
  SELECT pg_current_xact_id_if_assigned()::text AS tx, (line = ANY (lines))::text AS again, CASE WHEN line <> ALL (lines)
    THEN length(set_config('redlock.fence', array_to_string(lines || line, chr(10)), true)) END AS length
  FROM before`;
// Any other refusal aborts the transaction, too.
const POSTGRES_POISON = `SELECT CAST('redlock: refused' AS integer)`;

const fencePostgres: Fence = async (rows, run, settings) => {
  try {
    for (const row of rows) await fencePostgresRow(row, run, settings);
  } catch (error) {
    await run(POSTGRES_POISON).catch(() => undefined);
    throw error;
  }
};

// For the trigger it begins with the resource; with its name, no two locks have the same.
const lineOf = ({ resource, name, token }: FenceRow): string => `${escaped(resource)} ${token} ${name}`;

async function fencePostgresRow(row: FenceRow, run: Run, { allowSavepoint }: FenceSettings): Promise<void> {
  row.assertHeld();
  const { resource, name, token } = row;
  const answer = await run(POSTGRES_FENCE, [name, token]).catch((error: unknown) => {
    const [, stored] = says(error, POSTGRES_STALE) ?? [];
    throw stored === undefined ? error : refuse(row, stored);
  });
  const { fenced, x, tx, top } = only(answer, [resource], ['fenced', 'tx', 'top']);
  if (fenced !== token) throw unrecognized([resource], answer);
  const [confirmed] = await run(POSTGRES_CONFIRM, [tx, lineOf(row)]);
  if (confirmed?.['tx'] !== tx) throw ranOutside([resource]);
  if (x !== top && confirmed['again'] !== 'true' && !allowSavepoint) {
    const problem = 'ran inside a savepoint: fence before the first nested transaction';
    throw misuse('query', [resource], `${problem}, or pass \`allowSavepoint: true\``);
  }
}

// Names travel as hexadecimal digits, which the character set of the connection does not change.
const MYSQL_INSERT = `
  INSERT INTO redlock_fence (resource, token, fences) VALUES (UNHEX(?), 0, 0)
  ON DUPLICATE KEY UPDATE resource = resource`;
// The newest row, and the one that the other statements of this transaction see.
const MYSQL_LOCK = `
  SELECT CAST(token AS CHAR) AS token, CAST(fences AS CHAR) AS fences FROM redlock_fence
  WHERE resource = UNHEX(?) FOR UPDATE`;
const MYSQL_SEE = `SELECT CAST(fences AS CHAR) AS fences FROM redlock_fence WHERE resource = UNHEX(?)`;
const MYSQL_UPDATE = `UPDATE redlock_fence SET token = ?, fences = fences + 1 WHERE resource = UNHEX(?)`;
// Of `RELEASE SAVEPOINT` in autocommit, which has not kept the savepoint. Its text depends on the language of the server.
const NO_SAVEPOINT = 1305;

// No refusal rolls back: later statements of the caller would commit by themselves.
const fenceMysql: Fence = async (rows, run) => {
  const names = rows.map(({ resource }) => resource);
  try {
    await run('SAVEPOINT redlock_probe');
    await run('RELEASE SAVEPOINT redlock_probe');
  } catch (error) {
    throw says(error, /SAVEPOINT redlock_probe does not exist/i, NO_SAVEPOINT) ? ranOutside(names) : error;
  }
  const locked = [];
  for (const row of rows) {
    row.assertHeld();
    const { resource, name, token } = row;
    const hex = Buffer.from(name).toString('hex');
    await run(MYSQL_INSERT, [hex]);
    const newest = only(await run(MYSQL_LOCK, [hex]), [resource], ['token', 'fences']);
    if (BigInt(newest.token) > BigInt(token)) throw refuse(row, newest.token);
    locked.push({ resource, hex, token, fences: newest.fences });
  }
  // The first of these may begin the view of the transaction, so no row may still change.
  for (const { resource, hex, token, fences } of locked) {
    const [seen] = await run(MYSQL_SEE, [hex]);
    if (seen?.['fences'] !== fences) {
      const problem = 'came too late: this transaction read before the fence';
      throw misuse('query', [resource], `${problem}; fence all its locks in one call, as its first statement`);
    }
    await run(MYSQL_UPDATE, [token, hex]);
  }
};

/** What {@link fenceStatement} gives. */
export interface FenceStatement {
  /** For the connection whose transaction is to be fenced. */
  readonly sql: string;
  /** The values of the parameters, in order. */
  readonly params: string[];
  /**
   * Checks the rows that the statement returned.
   *
   * @throws {StaleTokenError} if a later holder has fenced before
   * @throws {RedlockConfigError} if these are not its rows
   */
  readonly check: (rows: unknown) => void;
}

/**
 * The fence for SQLite as one statement, for drivers that are synchronous and are not covered by {@link fenceSync}. It does
 * not notice that it runs outside a transaction.
 *
 * @param lock an exclusive lock or a permit whose `fencingToken()` has been awaited, or all those of the transaction
 * @throws {LockLostError} unless the lock is held now
 * @throws {RedlockConfigError} if the lock is shared, or its token has not been drawn
 */
export function fenceStatement(lock: Lock | readonly Lock[]): FenceStatement {
  return statementOf(fenceRowsOf(lock));
}

// One row for each resource, also for a stale token. They need no order: a database has one writer.
export function statementOf(rows: readonly FenceRow[]): FenceStatement {
  for (const row of rows) row.assertHeld();
  const values = rows.map(() => '(?, CAST(? AS INTEGER))').join(', ');
  const sql = `
    INSERT INTO redlock_fence (resource, token) VALUES ${values}
    ON CONFLICT (resource) DO UPDATE SET token = max(token, excluded.token)
    RETURNING resource, CAST(token AS TEXT) AS token`;
  const check = (answer: unknown): void => {
    const answers = rowsOf(answer);
    for (const row of rows) {
      const found = answers.filter(({ resource }) => resource === row.name);
      if (found.length === 0) throw unrecognized([row.resource], answers);
      const { token } = only(found, [row.resource], ['token']);
      if (token !== row.token) throw refuse(row, token);
    }
  };
  return { sql, params: rows.flatMap(({ name, token }) => [name, token]), check };
}

// What `BEGIN` answers inside a transaction. Outside, it begins one, which has to end.
export const NESTED_BEGIN = /within a transaction/i;

const fenceSqlite: Fence = async (rows, run) => {
  // An error elsewhere, where `BEGIN` would commit or do nothing.
  await run('SELECT sqlite_version()');
  const isOutside = await run('BEGIN').then(
    () => true,
    (error: unknown) => {
      if (says(error, NESTED_BEGIN)) return false;
      throw error;
    },
  );
  if (isOutside) {
    await run('ROLLBACK');
    throw ranOutside(rows.map(({ resource }) => resource));
  }
  const { sql, params, check } = statementOf(rows);
  check(await run(sql, params));
};

export const FENCES: Readonly<Record<FenceDialect, Fence>> = {
  postgres: fencePostgres,
  mysql: fenceMysql,
  sqlite: fenceSqlite,
};

// Of databases that find conflicts only when they commit, or may: a fence in them promises nothing.
const UNSUITABLE = /cockroach|yugabyte|-yb-|tidb|redshift|greenplum|materialize|vitess/i;

export async function dialectOf(rows: readonly FenceRow[], run: Run): Promise<FenceDialect> {
  const names = rows.map(({ resource }) => resource);
  let version: unknown;
  try {
    const [row] = await run('SELECT version() AS version');
    version = row?.['version'];
  } catch (error) {
    if (says(error, /no such function: version/i)) return 'sqlite';
    throw error;
  }
  if (typeof version !== 'string') throw unrecognized(names, version);
  if (!UNSUITABLE.test(version)) {
    if (version.startsWith('PostgreSQL ')) return 'postgres';
    if (/^\d+\.\d+/.test(version)) return 'mysql';
  }
  throw misuse('query', names, `does not know ${JSON.stringify(version)}: use PostgreSQL, MySQL, MariaDB or SQLite`);
}

// The only row, with these columns as strings.
function only<Name extends string>(
  answer: readonly Row[],
  names: readonly string[],
  columns: readonly Name[],
): Row & Readonly<Record<Name, string>> {
  const [row, another] = answer;
  if (!row || another || columns.some((column) => typeof row[column] !== 'string')) throw unrecognized(names, answer);
  return row as Row & Readonly<Record<Name, string>>;
}
