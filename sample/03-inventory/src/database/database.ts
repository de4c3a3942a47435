import type { OnApplicationShutdown } from '@nestjs/common';

/** The database that all instances share. */
export abstract class Database implements OnApplicationShutdown {
  /** Creates what may be there already; another instance may do the same at this moment. */
  abstract create(statement: string): Promise<void>;

  /** Rows that a statement returned. Its parameters are `$1` and so on. */
  abstract query<Row extends object>(statement: string, parameters: readonly unknown[]): Promise<Row[]>;

  abstract onApplicationShutdown(): Promise<void>;
}
