import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import pg from 'pg';
import type { Config } from './config.js';
import { CONFIG } from './config.token.js';

/** The database that all instances share. */
@Injectable()
export class Database implements OnApplicationShutdown {
  private readonly pool: pg.Pool;

  constructor(@Inject(CONFIG) config: Config) {
    this.pool = new pg.Pool({ connectionString: config.database });
    // A connection that breaks while nobody uses it; the next query opens another one.
    this.pool.on('error', () => undefined);
  }

  /** Rows that a statement returned. */
  async query<Row extends object>(statement: string, parameters: readonly unknown[]): Promise<Row[]> {
    const { rows } = await this.pool.query<Row>(statement, [...parameters]);
    return rows;
  }

  /** Runs statements as one transaction. */
  async run(statements: string): Promise<void> {
    await this.pool.query(statements);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.end();
  }
}
