import { fence } from 'nestjs-redlock/sql';
import pg from 'pg';

export function open(url) {
  const pool = new pg.Pool({ connectionString: url });
  return {
    dialect: 'postgres',
    execute: (sql) => pool.query(sql),
    count: async () => Number((await pool.query('SELECT count FROM stock')).rows[0].count),
    async sell(lock) {
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        await fence(lock, (sql, params) => client.query(sql, params));
        await client.query('UPDATE stock SET count = count - 1');
        await client.query('COMMIT');
      } catch (error) {
        await client.query('ROLLBACK');
        throw error;
      } finally {
        client.release();
      }
    },
    outside: (lock) => fence(lock, (sql, params) => pool.query(sql, params)),
    close: () => pool.end(),
  };
}
