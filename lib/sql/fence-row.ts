import { showNames } from '../core/display.js';
import { LockError, RedlockConfigError } from '../core/errors.js';
import type { Lock } from '../core/lock.js';

// In bytes of UTF-8: each of the databases can index that many.
export const LONGEST_NAME = 1_024;
// The names of keys contain NUL, which PostgreSQL does not store, and the setting that its trigger reads has one in each line.
const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\0': '\\0', '\n': '\\n' };

export const escaped = (name: string): string =>
  name.replace(/[\\\0\n]/g, (character) => ESCAPES[character] ?? character);

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

export type Row = Readonly<Record<string, unknown>>;
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
    super(`fence of ${showNames([resource])} refused: ${token}, ${later}`, [resource]);
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
  const error = new RedlockConfigError(option, names[0], problem, `fence of ${showNames(names)} ${problem}`);
  return cause === undefined ? error : Object.assign(error, { cause });
}

export function ranOutside(names: readonly string[]): RedlockConfigError {
  const problem = 'ran outside a transaction: pass the query function of the transaction, not of the pool';
  return misuse('query', names, problem);
}

// Never a pass: what is not recognized may be anything.
export function unrecognized(names: readonly string[], found: unknown): RedlockConfigError {
  const [row] = rowsOf(found);
  const problem = row ? `got a row of ${Object.keys(row).join(', ') || 'nothing'}, not its own` : 'got no row';
  return misuse('query', names, `${problem}: let the query function return what the driver returns`);
}

export function refuse({ resource, token }: FenceRow, stored: string): StaleTokenError {
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
