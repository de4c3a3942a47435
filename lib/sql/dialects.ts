import { type Lock, LockError, RedlockConfigError } from '../index.js';
import { display } from '../internal.js';

/** The databases that `fence` knows. `mysql` is MariaDB, too. */
export type FenceDialect = 'postgres' | 'mysql' | 'sqlite';

// In bytes of UTF-8: each of the databases can index that many.
export const LONGEST_NAME = 1_024;

// The names of keys contain NUL, which PostgreSQL does not store, and the setting that its trigger reads has one in each line.
const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\0': '\\0', '\n': '\\n' };

const escaped = (name: string): string => name.replace(/[\\\0\n]/g, (character) => ESCAPES[character] ?? character);

/** A row of the table `redlock_fence`, and the token that it is to have. */
export interface FenceRow {
  /** For messages. */
  readonly resource: string;
  /** The key of the table. */
  readonly name: string;
  readonly token: string;
  /** To be called before the row is used: the table alone would let a lost lock pass if the masters have lost their counters. */
  readonly assertHeld: () => void;
}

type Row = Readonly<Record<string, unknown>>;

export type Run = (sql: string, params?: string[]) => Promise<readonly Row[]>;

/**
 * The fence refused the token of a lock: a later holder of the resource has fenced before. The transaction must not commit.
 * On PostgreSQL it cannot.
 */
export class StaleTokenError extends LockError {
  readonly code = 'STALE_TOKEN';
  readonly statusCode = 409;

  constructor(
    resource: string,
    /** The fencing token of this lock. */
    readonly token: number,
    /** The larger token that the table has. */
    readonly stored: number,
  ) {
    const later = `the table has ${stored}, a later holder was here; roll back`;
    super(`fence of ${display.showNames([resource])} refused: ${token}, ${later}`, [resource]);
  }
}

// Sorted by code units, so that transactions that fence the same resources wait for each other, and do not deadlock.
export function fenceRowsOf(locks: Lock | readonly Lock[]): readonly FenceRow[] {
  const rows = new Map(
    [locks]
      .flat()
      .flatMap(rowsOfLock)
      .map((row) => [row.name, row]),
  );
  if (rows.size === 0) throw new RedlockConfigError('lock', locks, 'must be a lock, or a list of one or more');
  return [...rows.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}

function rowsOfLock(lock: Lock): readonly FenceRow[] {
  const { keys, token } = (lock as Partial<Lock> | null | undefined)?.fence ?? {};
  if (!keys) throw new RedlockConfigError('lock', lock, 'must be a lock of this version of nestjs-redlock');
  if (lock.mode === 'shared') {
    throw misuse('lock', lock.resources, 'has a shared lock, which has no fencing token: take an exclusive lock');
  }
  if (token === undefined) {
    const problem = 'has no token: call `await lock.fencingToken()` before the transaction begins';
    throw misuse('lock', lock.resources, `${problem}, so that an outage of the masters cannot hold it open`);
  }
  // In the order of the keys.
  const resources = [...lock.resources].sort();
  return keys.map((key, index) => {
    const resource = resources[index] ?? key;
    const name = escaped(key);
    if (Buffer.byteLength(name) <= LONGEST_NAME)
      return { resource, name, token: String(token), assertHeld: () => lock.assertHeld() };
    throw misuse('lock', [resource], `has a name of more than ${LONGEST_NAME} bytes: use a shorter resource`);
  });
}

export function misuse(option: string, names: readonly string[], problem: string, cause?: unknown): RedlockConfigError {
  const error = new RedlockConfigError(option, names[0], problem, `fence of ${display.showNames(names)} ${problem}`);
  return cause === undefined ? error : Object.assign(error, { cause });
}

export function ranOutside(names: readonly string[]): RedlockConfigError {
  const problem = 'ran outside a transaction: pass the query function of the transaction, not of the pool';
  return misuse('query', names, problem);
}

// Never a pass: what is not recognized may be anything.
function unrecognized(names: readonly string[], found: unknown): RedlockConfigError {
  const [row] = rowsOf(found);
  const problem = row ? `got a row of ${Object.keys(row).join(', ') || 'nothing'}, not its own` : 'got no row';
  return misuse('query', names, `${problem}: let the query function return what the driver returns`);
}

function refuse({ resource, token }: FenceRow, stored: string): StaleTokenError {
  return new StaleTokenError(resource, Number(token), Number(stored));
}

// Of the forms in which drivers answer: rows, `{ rows }` and `[rows, fields]`.
export function rowsOf(answer: unknown): readonly Row[] {
  const { rows = answer } = Object(answer) as { readonly rows?: unknown };
  const list = Array.isArray(rows) && Array.isArray(rows[0]) ? (rows[0] as unknown[]) : rows;
  return Array.isArray(list) ? (list.filter((row) => typeof row === 'object' && row !== null) as Row[]) : [];
}

// What an error or one of its causes says: object mappers wrap the errors of drivers.
export function says(error: unknown, text: RegExp, errno?: number): readonly string[] | undefined {
  for (let each = error, depth = 0; each instanceof Error && depth < 5; each = each.cause, depth++) {
    const found = text.exec(each.message);
    if (found) return found;
    if (errno !== undefined && (each as { readonly errno?: unknown }).errno === errno) return [];
  }
  return undefined;
}

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
  // The first of these may fix what the transaction sees, so no row may still change.
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

// The trigger reads the setting that the fence leaves. An argument is the beginning of a resource that must be fenced.
const POSTGRES_TRIGGER = `CREATE OR REPLACE FUNCTION redlock_require_fence() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  fenced text[] := string_to_array(current_setting('redlock.fence', true), chr(10));
BEGIN
  IF fenced[1] IS DISTINCT FROM pg_current_xact_id()::text
    OR (TG_NARGS > 0 AND NOT EXISTS (SELECT FROM unnest(fenced[2:]) AS line WHERE starts_with(line, TG_ARGV[0])))
  THEN
    RAISE EXCEPTION 'redlock: % of "%" without a fence in this transaction', TG_OP, TG_TABLE_NAME
      USING HINT = 'Call fence(lock, query) with the query function of the same transaction first.';
  END IF;
  RETURN NULL;
END $$`;

const MIGRATIONS: Readonly<Record<FenceDialect, readonly string[]>> = {
  postgres: [
    'CREATE TABLE IF NOT EXISTS redlock_fence (resource text PRIMARY KEY, token bigint NOT NULL)',
    POSTGRES_TRIGGER,
  ],
  mysql: [
    `CREATE TABLE IF NOT EXISTS redlock_fence (
  resource varbinary(${LONGEST_NAME}) PRIMARY KEY, token bigint NOT NULL, fences bigint NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC`,
  ],
  sqlite: ['CREATE TABLE IF NOT EXISTS redlock_fence (resource text PRIMARY KEY, token integer NOT NULL)'],
};

/**
 * The statements that create the table of {@link fence}, each to be sent alone, and on PostgreSQL the function for triggers.
 * They may run more than once. The same statements are in `dist/sql/<dialect>.sql` of the package.
 *
 * @param dialect the database
 * @throws {RedlockConfigError} if there is no such dialect
 */
export function fenceMigration(dialect: FenceDialect): readonly string[] {
  if (Object.hasOwn(MIGRATIONS, dialect)) return MIGRATIONS[dialect];
  throw new RedlockConfigError('dialect', dialect, "must be 'postgres', 'mysql' or 'sqlite'");
}
