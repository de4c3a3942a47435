import { DatabaseSync } from 'node:sqlite';
import { fenceSync } from 'nestjs-redlock/sql';

export function open(url) {
  const database = new DatabaseSync(url);
  return {
    dialect: 'sqlite',
    execute: (sql) => database.exec(sql),
    count: () => database.prepare('SELECT count FROM stock').get().count,
    sell(lock) {
      database.exec('BEGIN IMMEDIATE');
      try {
        fenceSync(lock, database);
        database.exec('UPDATE stock SET count = count - 1');
        database.exec('COMMIT');
      } catch (error) {
        database.exec('ROLLBACK');
        throw error;
      }
    },
    outside: (lock) => fenceSync(lock, database),
    close: () => database.close(),
  };
}
