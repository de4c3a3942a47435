import pg from 'pg';
import { Database } from './database.js';

/** A PostgreSQL server, accessed through a pool of connections. */
export class PostgresDatabase extends Database {
  private readonly pool: pg.Pool;

  constructor(url: string) {
    super();
    this.pool = new pg.Pool({ connectionString: url });
    // An idle connection broke. The next query opens another one.
    this.pool.on('error', () => undefined);
  }

  async create(statement: string): Promise<void> {
    // An advisory lock of the database. Otherwise two instances that start together could both create the table, and
    // one would fail.
    await this.pool.query(`SELECT pg_advisory_xact_lock(1); ${statement}`);
  }

  async query<Row extends object>(statement: string, parameters: readonly unknown[]): Promise<Row[]> {
    const { rows } = await this.pool.query<Row>(statement, [...parameters]);
    return rows;
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.end();
  }
}
