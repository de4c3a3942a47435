import { setTimeout as sleep } from 'node:timers/promises';
import { ConflictException, Inject, Injectable } from '@nestjs/common';
import { type Lock, LockService } from 'nestjs-redlock';
import type { Config } from '../config.js';
import { CONFIG } from '../config.token.js';
import { freeze } from '../freeze.js';
import { StockTable } from './stock.table.js';

/** Duration of a payment, in milliseconds. */
const PAYMENT = 50;

@Injectable()
export class StockService {
  constructor(
    private readonly locks: LockService,
    private readonly table: StockTable,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  count(item: string): Promise<number> {
    return this.table.look(item);
  }

  /** Sets the counted stock. */
  async put(item: string, count: number): Promise<void> {
    await this.locked(item, (lock) => this.table.write(item, count, lock));
  }

  /** Sells one item, and resolves with the remaining stock. */
  async sell(item: string): Promise<number> {
    return this.locked(item, async (lock) => {
      const count = await this.table.read(item, lock);
      if (count === 0) throw new ConflictException(`${item} is sold out`);
      await sleep(PAYMENT);
      // This check is good style because it is cheap. But no check can rule out that the process pauses right
      // afterwards.
      lock.assertHeld();
      if (this.config.freeze) freeze();
      await this.table.write(item, count - 1, lock);
      return count - 1;
    });
  }

  private locked<T>(item: string, work: (lock: Lock) => Promise<T>): Promise<T> {
    return this.locks.withLock(`stock:${item}`, async (lock) => {
      // Before any transaction begins: no outage of the masters holds one open.
      await lock.fencingToken();
      return work(lock);
    });
  }
}
