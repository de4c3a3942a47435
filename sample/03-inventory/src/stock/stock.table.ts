import { Inject, Injectable, NotFoundException, type OnModuleInit } from '@nestjs/common';
import type { Config } from '../config.js';
import { CONFIG } from '../config.token.js';
import { Database } from '../database/database.js';
import { StaleWriteError } from './stale-write.error.js';
import { CLAIM, CREATE, PUT, READ, WRITE, WRITE_UNGUARDED } from './stock.sql.js';

interface Row {
  /** PostgreSQL's driver returns a bigint as a string. */
  count: string | number;
}

/** The rows, guarded by the fencing tokens of the locks under which they are written. */
@Injectable()
export class StockTable implements OnModuleInit {
  constructor(
    private readonly database: Database,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.database.create(CREATE);
  }

  async read(item: string): Promise<number> {
    const [row] = await this.database.query<Row>(READ, [item]);
    if (!row) throw new NotFoundException(`There is no ${item}`);
    return Number(row.count);
  }

  /** @throws {StaleWriteError} if a request with a larger token has claimed the row before */
  async claim(item: string, token: number): Promise<number> {
    if (!this.config.fenced) return this.read(item);
    const [row] = await this.database.query<Row>(CLAIM, [item, token]);
    if (row) return Number(row.count);
    await this.read(item);
    throw new StaleWriteError(item, token);
  }

  /** @throws {StaleWriteError} if another request has claimed the row since */
  async write(item: string, token: number, count: number): Promise<void> {
    const rows = this.config.fenced
      ? await this.database.query<Row>(WRITE, [item, token, count])
      : await this.database.query<Row>(WRITE_UNGUARDED, [item, count]);
    if (rows.length === 0) throw new StaleWriteError(item, token);
  }

  /** @throws {StaleWriteError} if a request with a larger token has claimed the row before */
  async put(item: string, token: number, count: number): Promise<void> {
    const rows = await this.database.query<Row>(PUT, [item, token, count]);
    if (rows.length === 0) throw new StaleWriteError(item, token);
  }
}
