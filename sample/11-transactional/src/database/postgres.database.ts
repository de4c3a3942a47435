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

  query<Row extends object>(statement: string, ...parameters: unknown[]): Promise<Row[]> {
    return rowsOf(this.pool, statement, parameters);
  }

  async transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    const client = await this.pool.connect();
    try {
      await client.query('BEGIN');
      const result = await work({ query: (statement, ...parameters) => rowsOf(client, statement, parameters) });
      await client.query('COMMIT');
      return result;
    } catch (error) {
      await client.query('ROLLBACK');
      throw error;
    } finally {
      client.release();
    }
  }

  close(): Promise<void> {
    return this.pool.end();
  }
}

async function rowsOf<Row extends object>(
  client: pg.Pool | pg.PoolClient,
  statement: string,
  parameters: unknown[],
): Promise<Row[]> {
  const { rows } = await client.query<Row>(statement, parameters);
  return rows;
}
