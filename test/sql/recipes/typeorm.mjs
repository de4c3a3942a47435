import { fence } from 'nestjs-redlock/sql';
import { DataSource, EntitySchema } from 'typeorm';

const Stock = new EntitySchema({
  name: 'stock',
  columns: { item: { type: 'varchar', primary: true, length: 10 }, count: { type: 'int' } },
});

export async function open(url) {
  const isPostgres = url.startsWith('postgres:');
  const socketPath = new URL(url.replace('@/', '@localhost/')).searchParams.get('socketPath') ?? undefined;
  const server = isPostgres
    ? { type: 'postgres', url }
    : { type: 'mysql', socketPath, username: 'root', database: 'test' };
  const dataSource = await new DataSource({ ...server, entities: [Stock] }).initialize();
  return {
    dialect: isPostgres ? 'postgres' : 'mysql',
    execute: (sql) => dataSource.query(sql),
    count: async () => (await dataSource.getRepository(Stock).findOneByOrFail({ item: 'teapot' })).count,
    sell: (lock) =>
      dataSource.transaction(async (manager) => {
        await fence(lock, (sql, params) => manager.query(sql, params));
        await manager.getRepository(Stock).decrement({ item: 'teapot' }, 'count', 1);
      }),
    outside: (lock) => fence(lock, (sql, params) => dataSource.query(sql, params)),
    close: () => dataSource.destroy(),
  };
}
