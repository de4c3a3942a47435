import { sql } from 'drizzle-orm';
import { drizzle as drizzleMysql } from 'drizzle-orm/mysql2';
import { drizzle as drizzlePostgres } from 'drizzle-orm/node-postgres';
import mysql from 'mysql2/promise';
import { fence } from 'nestjs-redlock/sql';
import pg from 'pg';

// The statement with its parameters, as a query of Drizzle.
const bound = (text, params) =>
  sql.join(
    text.split(/\$\d|\?/).flatMap((part, i) => (i ? [sql.param(params[i - 1]), sql.raw(part)] : [sql.raw(part)])),
  );

export function open(url) {
  const isPostgres = url.startsWith('postgres:');
  const client = isPostgres ? new pg.Pool({ connectionString: url }) : mysql.createPool(url);
  const database = isPostgres ? drizzlePostgres(client) : drizzleMysql(client);
  const rowsOf = (answer) => (isPostgres ? answer.rows : answer[0]);
  return {
    dialect: isPostgres ? 'postgres' : 'mysql',
    execute: (text) => database.execute(sql.raw(text)),
    count: async () => Number(rowsOf(await database.execute(sql`SELECT count FROM stock`))[0].count),
    sell: (lock) =>
      database.transaction(async (tx) => {
        await fence(lock, (text, params) => tx.execute(bound(text, params)));
        await tx.execute(sql`UPDATE stock SET count = count - 1`);
      }),
    outside: (lock) => fence(lock, (text, params) => database.execute(bound(text, params))),
    close: () => client.end(),
  };
}
