import knex from 'knex';
import { fence } from 'nestjs-redlock/sql';

export function open(url) {
  const isPostgres = url.startsWith('postgres:');
  const socketPath = new URL(url.replace('@/', '@localhost/')).searchParams.get('socketPath');
  const database = isPostgres
    ? knex({ client: 'pg', connection: { connectionString: url } })
    : knex({ client: 'mysql2', connection: { socketPath, user: 'root', database: 'test' } });
  return {
    dialect: isPostgres ? 'postgres' : 'mysql',
    execute: (sql) => database.raw(sql),
    count: async () => (await database('stock').first('count')).count,
    sell: (lock) =>
      database.transaction(async (tx) => {
        await fence(lock, (sql, params) => tx.raw(sql.replace(/\$\d/g, '?'), params));
        await tx('stock').decrement('count', 1);
      }),
    outside: (lock) => fence(lock, (sql, params) => database.raw(sql.replace(/\$\d/g, '?'), params)),
    close: () => database.destroy(),
  };
}
