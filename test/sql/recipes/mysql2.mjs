import mysql from 'mysql2/promise';
import { fence } from 'nestjs-redlock/sql';

export function open(url) {
  const pool = mysql.createPool(url);
  return {
    dialect: 'mysql',
    execute: (sql) => pool.query(sql),
    count: async () => (await pool.query('SELECT count FROM stock'))[0][0].count,
    async sell(lock) {
      const connection = await pool.getConnection();
      try {
        await connection.beginTransaction();
        await fence(lock, (sql, params) => connection.query(sql, params));
        await connection.query('UPDATE stock SET count = count - 1');
        await connection.commit();
      } catch (error) {
        await connection.rollback();
        throw error;
      } finally {
        connection.release();
      }
    },
    outside: (lock) => fence(lock, (sql, params) => pool.query(sql, params)),
    close: () => pool.end(),
  };
}
