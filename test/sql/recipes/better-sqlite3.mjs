import Database from 'better-sqlite3';
import { fenceSync } from 'nestjs-redlock/sql';

export function open(url) {
  const database = new Database(url);
  const sell = database.transaction((lock) => {
    fenceSync(lock, database);
    database.prepare('UPDATE stock SET count = count - 1').run();
  });
  return {
    dialect: 'sqlite',
    execute: (sql) => database.exec(sql),
    count: () => database.prepare('SELECT count FROM stock').get().count,
    sell: (lock) => sell.immediate(lock),
    outside: (lock) => fenceSync(lock, database),
    close: () => database.close(),
  };
}
