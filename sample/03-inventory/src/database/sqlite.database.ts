import Connection from 'libsql';
import { Database, type Sql } from './database.js';

/** How long a statement waits for transactions of other connections, in milliseconds. */
const BUSY_WITHIN = 5_000;

/** An SQLite file. Statements run synchronously and block the process meanwhile. */
export class SqliteDatabase extends Database {
  readonly dialect = 'sqlite';

  constructor(private readonly path: string) {
    super();
  }

  create(statement: string): Promise<void> {
    return this.connected((connection) => new Promise((resolve) => resolve(void connection.exec(statement))));
  }

  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.connected(async (connection) => {
      connection.exec('BEGIN');
      try {
        const result = await work({
          query: (statement, parameters) =>
            new Promise((resolve) => resolve(rowsOf(connection, statement, parameters))),
        });
        connection.exec('COMMIT');
        return result;
      } catch (error) {
        connection.exec('ROLLBACK');
        throw error;
      }
    });
  }

  onApplicationShutdown(): Promise<void> {
    return Promise.resolve();
  }

  /** A connection of its own keeps other statements of this process out of a transaction. */
  private async connected<T>(work: (connection: Connection.Database) => Promise<T>): Promise<T> {
    const connection = new Connection(this.path);
    try {
      connection.exec(`PRAGMA busy_timeout = ${BUSY_WITHIN}`);
      return await work(connection);
    } finally {
      connection.close();
    }
  }
}

function rowsOf<Row extends object>(
  connection: Connection.Database,
  statement: string,
  parameters: readonly unknown[],
): Row[] {
  const prepared = connection.prepare(statement.replace(/\$(\d+)/g, '?$1'));
  if (prepared.reader) return prepared.all(...parameters) as Row[];
  prepared.run(...parameters);
  return [];
}
