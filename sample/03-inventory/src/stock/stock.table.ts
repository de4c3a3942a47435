import { Inject, Injectable, NotFoundException, type OnModuleInit } from '@nestjs/common';
import { type Lock, LockLostError } from 'nestjs-redlock';
import { fence, fenceMigration, StaleTokenError } from 'nestjs-redlock/sql';
import type { Config } from '../config.js';
import { CONFIG } from '../config.token.js';
import { Database, type Sql } from '../database/database.js';
import { StaleWriteError } from './stale-write.error.js';
import { CREATE, READ, WRITE } from './stock.sql.js';

interface Row {
  /** PostgreSQL's driver returns a bigint as a string. */
  count: string | number;
}

/** The rows. Each transaction under a lock begins with the fence of that lock. */
@Injectable()
export class StockTable implements OnModuleInit {
  constructor(
    private readonly database: Database,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  async onModuleInit(): Promise<void> {
    for (const statement of [CREATE, ...fenceMigration(this.database.dialect)]) await this.database.create(statement);
  }

  /** For display: what it returns may be out of date, and must not be written back. */
  async look(item: string): Promise<number> {
    return this.database.transaction((sql) => countOf(sql, item));
  }

  /** @throws {StaleWriteError} if the lock is lost, or a later holder has read or written the row before */
  async read(item: string, lock: Lock): Promise<number> {
    return this.fenced(item, lock, (sql) => countOf(sql, item));
  }

  /** @throws {StaleWriteError} if the lock is lost, or a later holder has read or written the row before */
  async write(item: string, count: number, lock: Lock): Promise<void> {
    await this.fenced(item, lock, (sql) => sql.query(WRITE, [item, count]));
  }

  private async fenced<T>(item: string, lock: Lock, work: (sql: Sql) => Promise<T>): Promise<T> {
    const { dialect } = this.database;
    try {
      return await this.database.transaction(async (sql) => {
        if (this.config.fenced) {
          await fence(lock, (statement, parameters) => sql.query(statement, parameters), { dialect });
        }
        return work(sql);
      });
    } catch (error) {
      const isLate = error instanceof StaleTokenError || error instanceof LockLostError;
      throw isLate ? new StaleWriteError(item) : error;
    }
  }
}

async function countOf(sql: Sql, item: string): Promise<number> {
  const [row] = await sql.query<Row>(READ, [item]);
  if (!row) throw new NotFoundException(`There is no ${item}`);
  return Number(row.count);
}
