import { NotFoundException, type OnApplicationShutdown } from '@nestjs/common';
import Connection from 'libsql';
import type { Lock } from 'nestjs-redlock';
import { fenceMigration, fenceSync } from 'nestjs-redlock/sql';

/** The rows. Each transaction under a lock begins with the fence of that lock. */
export class StockTable implements OnApplicationShutdown {
  private readonly connection: Connection.Database;

  constructor(path: string) {
    this.connection = new Connection(path);
    this.connection.exec('PRAGMA busy_timeout = 5000');
    this.connection.exec('CREATE TABLE IF NOT EXISTS stock (item text PRIMARY KEY, count integer NOT NULL)');
    for (const statement of fenceMigration('sqlite')) this.connection.exec(statement);
  }

  onApplicationShutdown(): void {
    this.connection.close();
  }

  look(item: string): number {
    const [row] = this.connection.prepare('SELECT count FROM stock WHERE item = ?').all(item) as { count: number }[];
    if (!row) throw new NotFoundException(`There is no ${item}`);
    return row.count;
  }

  /** @throws {StaleTokenError} if a later holder has read or written since */
  read(item: string, lock: Lock): number {
    return this.fenced(lock, () => this.look(item));
  }

  /** @throws {StaleTokenError} if a later holder has read or written since */
  write(item: string, count: number, lock: Lock): void {
    const statement = `INSERT INTO stock VALUES (?, ?) ON CONFLICT (item) DO UPDATE SET count = excluded.count`;
    this.fenced(lock, () => this.connection.prepare(statement).run(item, count));
  }

  private fenced<T>(lock: Lock, work: () => T): T {
    return this.connection.transaction(() => {
      this.fence(lock);
      return work();
    })();
  }

  protected fence(lock: Lock): void {
    fenceSync(lock, this.connection);
  }
}
