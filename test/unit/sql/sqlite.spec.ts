import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import Connection from 'libsql';
import { type Lock } from '../../../lib/locks/lock.js';
import { fence, fenceMigration, fenceStatement, fenceSync } from '../../../lib/sql/index.js';

const [T1, T2] = [41, 57];

/** A lock with a token, as far as a fence looks at it. */
function lockWith(token: number, keys = ['lock:stock']): Lock {
  const resources = keys.map((key) => key.replace(/^lock:/, ''));
  return { resources, mode: 'exclusive', fence: { keys, token }, assertHeld: () => undefined } as unknown as Lock;
}

let folder: string;
let one: Connection.Database;
let two: Connection.Database;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'fence-'));
  [one, two] = [1, 2].map(() => new Connection(join(folder, 'stock.db'))) as [Connection.Database, Connection.Database];
  one.exec('PRAGMA journal_mode = WAL');
  for (const sql of fenceMigration('sqlite')) one.exec(sql);
  one.exec(`CREATE TABLE stock (count int); INSERT INTO stock VALUES (10)`);
});
afterEach(() => {
  one.close();
  two.close();
  rmSync(folder, { recursive: true });
});

/** Begins a transaction with the fence of a lock. */
function begin(database: Connection.Database, token: number, keys?: string[]): void {
  database.exec('BEGIN');
  fenceSync(lockWith(token, keys), database);
}

const countOf = (database: Connection.Database): number =>
  (database.prepare('SELECT count FROM stock').all() as { count: number }[])[0]!.count;

describe('On SQLite', () => {
  it('T1 does not commit after T2, and learns both tokens', () => {
    begin(two, T2);
    two.exec('COMMIT');
    expect(() => begin(one, T1)).toThrow(
      'fence of "stock" refused: 41, the table has 57, a later holder was here; roll back',
    );
  });

  it('T2 cannot fence while the transaction of T1 is open, and then sees what it wrote', () => {
    begin(one, T1);
    one.exec('UPDATE stock SET count = 9');
    expect(() => begin(two, T2)).toThrow(/database is locked/);
    one.exec('COMMIT');
    fenceSync(lockWith(T2), two);
    expect(countOf(two)).toBe(9);
  });

  it('T2 is refused by the database if it read before the fence, and T1 has committed since', () => {
    two.exec('BEGIN');
    expect(countOf(two)).toBe(10);
    begin(one, T1);
    one.exec('UPDATE stock SET count = 9; COMMIT');
    expect(() => fenceSync(lockWith(T2), two)).toThrow(/database is locked/);
  });

  it('a holder fences more than once', () => {
    begin(one, T1);
    fenceSync(lockWith(T1), one);
    one.exec('COMMIT');
    expect(() => begin(one, T1)).not.toThrow();
  });

  it('several locks have one fence, also one that is named twice', () => {
    one.exec('BEGIN');
    const [a, b] = [lockWith(T1, ['lock:a']), lockWith(T2, ['lock:b'])];
    fenceSync([b, a, b], one);
    expect(() => fenceSync([a, lockWith(T1, ['lock:b'])], one)).toThrow(/fence of "b" refused/);
  });

  it('tokens of any size are distinguished', () => {
    begin(one, Number.MAX_SAFE_INTEGER - 1);
    expect(() => fenceSync(lockWith(Number.MAX_SAFE_INTEGER - 2), one)).toThrow(/refused: 9007199254740989/);
    fenceSync(lockWith(Number.MAX_SAFE_INTEGER), one);
  });

  it('a fence outside a transaction is refused, and begins none', () => {
    expect(() => fenceSync(lockWith(T1), one)).toThrow(
      'fence of "stock" ran outside a transaction: pass the query function of the transaction, not of the pool',
    );
    one.exec('BEGIN');
    one.exec('ROLLBACK');
  });

  it('a missing table is named', () => {
    one.exec('DROP TABLE redlock_fence; BEGIN');
    expect(() => fenceSync(lockWith(T1), one)).toThrow(
      'fence of "stock" found no table redlock_fence: run `fenceMigration` in a migration',
    );
  });

  it('drivers with promises use the same fence', async () => {
    const query = async (sql: string, params: string[]): Promise<unknown> => {
      const statement = one.prepare(sql);
      return statement.reader ? statement.all(...params) : statement.run(...params);
    };
    await expect(fence(lockWith(T1), query)).rejects.toThrow(/ran outside a transaction/);
    one.exec('BEGIN');
    await fence(lockWith(T2), query);
    await expect(fence(lockWith(T1), query)).rejects.toMatchObject({ code: 'STALE_TOKEN', statusCode: 409 });
    await fence(lockWith(T2), query, { dialect: 'sqlite' });
    one.exec('COMMIT');
  });

  it('a statement without its maximum accepts a late token: each clause is needed', () => {
    const late = (change: (sql: string) => string): void => {
      for (const token of [T2, T1]) {
        const { sql, params, check } = fenceStatement(lockWith(token));
        check(one.prepare(change(sql)).all(...params));
      }
    };
    one.exec('BEGIN');
    expect(() => late((sql) => sql)).toThrow(/refused/);
    expect(() => late((sql) => sql.replace('max(token, excluded.token)', 'excluded.token'))).not.toThrow();
    expect(() => late((sql) => sql.replace(/ON CONFLICT[^]*(?=RETURNING)/, ''))).toThrow(/UNIQUE/);
    expect(() => late((sql) => sql.replace(/RETURNING[^]*/, 'RETURNING 1'))).toThrow(/a row of 1, not its own/);
  });
});
