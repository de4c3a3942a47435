import Connection from 'libsql';
import { Database } from './database.js';

/** How long a statement waits for statements of other processes, in milliseconds. */
const BUSY_WITHIN = 5_000;

/** An SQLite file. Statements run synchronously and block the process meanwhile. */
export class SqliteDatabase extends Database {
  private readonly connection: Connection.Database;

  constructor(path: string) {
    super();
    this.connection = new Connection(path);
    this.connection.exec(`PRAGMA busy_timeout = ${BUSY_WITHIN}`);
  }

  create(statement: string): Promise<void> {
    return this.promise(() => void this.connection.exec(statement));
  }

  query<Row extends object>(statement: string, parameters: readonly unknown[]): Promise<Row[]> {
    return this.promise(() => {
      const prepared = this.connection.prepare(statement.replace(/\$(\d+)/g, '?$1'));
      return prepared.all(...parameters) as Row[];
    });
  }

  onApplicationShutdown(): Promise<void> {
    return this.promise(() => void this.connection.close());
  }

  /** Turns an exception into a rejection, as with any other database. */
  private promise<T>(statement: () => T): Promise<T> {
    return new Promise((resolve) => resolve(statement()));
  }
}
