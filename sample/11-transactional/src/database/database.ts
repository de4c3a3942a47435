import type { FenceDialect } from 'nestjs-redlock/sql';

/** Runs statements with the parameters `$1` and so on. */
export interface Sql {
  query<Row extends object>(statement: string, ...parameters: unknown[]): Promise<Row[]>;
}

/** The database that all instances share. */
export abstract class Database implements Sql {
  abstract readonly dialect: FenceDialect;

  abstract query<Row extends object>(statement: string, ...parameters: unknown[]): Promise<Row[]>;

  /** Commits when the work succeeds, and rolls back when it fails. */
  abstract transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T>;

  abstract close(): Promise<void>;
}
