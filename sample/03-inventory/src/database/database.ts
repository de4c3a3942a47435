import type { OnApplicationShutdown } from '@nestjs/common';

/** The database that all instances share. */
export abstract class Database implements OnApplicationShutdown {
  /** Creates a table unless it exists. Another instance may run the same statement at the same time. */
  abstract create(statement: string): Promise<void>;

  /** Resolves with the rows that a statement returned. Its parameters are `$1` and so on. */
  abstract query<Row extends object>(statement: string, parameters: readonly unknown[]): Promise<Row[]>;

  abstract onApplicationShutdown(): Promise<void>;
}
