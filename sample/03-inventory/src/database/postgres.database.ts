import pg from 'pg';
import { Database, type Sql } from './database.js';

/** A PostgreSQL server, accessed through a pool of connections. */
export class PostgresDatabase extends Database {
  readonly dialect = 'postgres';
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

  async transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    const client = await this.pool.connect();
    try {
      await client.query('BEGIN');
      const result = await work({
        query: async <Row extends object>(statement: string, parameters: readonly unknown[]) =>
          (await client.query<Row>(statement, [...parameters])).rows,
      });
      await client.query('COMMIT');
      return result;
    } catch (error) {
      await client.query('ROLLBACK');
      throw error;
    } finally {
      client.release();
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.end();
  }
}
