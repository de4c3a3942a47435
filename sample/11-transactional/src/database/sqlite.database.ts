import Connection from 'libsql';
import { Database, type Sql } from './database.js';

/** An SQLite file. */
export class SqliteDatabase extends Database {
  readonly dialect = 'sqlite';
  private readonly connection: Connection.Database;

  constructor(private readonly path: string) {
    super();
    this.connection = new Connection(path);
    // In WAL mode, readers see the committed data while another connection writes, as in PostgreSQL.
    this.connection.exec('PRAGMA journal_mode = WAL');
  }

  query<Row extends object>(statement: string, ...parameters: unknown[]): Promise<Row[]> {
    return rowsOf(this.connection, statement, parameters);
  }

  async transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    // A connection of its own keeps other statements of this process out of the transaction.
    const connection = new Connection(this.path);
    try {
      connection.exec('BEGIN');
      const result = await work({ query: (statement, ...parameters) => rowsOf(connection, statement, parameters) });
      connection.exec('COMMIT');
      return result;
    } catch (error) {
      connection.exec('ROLLBACK');
      throw error;
    } finally {
      connection.close();
    }
  }

  close(): Promise<void> {
    this.connection.close();
    return Promise.resolve();
  }
}

/** Turns an exception into a rejection, as with any other database. */
function rowsOf<Row extends object>(
  connection: Connection.Database,
  statement: string,
  parameters: unknown[],
): Promise<Row[]> {
  return new Promise((resolve) => {
    const prepared = connection.prepare(statement.replace(/\$(\d+)/g, '?$1'));
    if (!prepared.reader) prepared.run(...parameters);
    resolve(prepared.reader ? (prepared.all(...parameters) as Row[]) : []);
  });
}
