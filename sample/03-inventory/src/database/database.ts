import type { OnApplicationShutdown } from '@nestjs/common';
import type { FenceDialect } from 'nestjs-redlock/sql';

/** Runs statements in a transaction. Their parameters are `$1` and so on. */
export interface Sql {
  query<Row extends object>(statement: string, parameters: readonly unknown[]): Promise<Row[]>;
}

/** The database that all instances share. */
export abstract class Database implements OnApplicationShutdown {
  abstract readonly dialect: FenceDialect;

  /** Creates what does not exist. Another instance may run the same statement at the same time. */
  abstract create(statement: string): Promise<void>;

  /** Commits when the work succeeds, and rolls back when it fails. */
  abstract transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T>;

  abstract onApplicationShutdown(): Promise<void>;
}
