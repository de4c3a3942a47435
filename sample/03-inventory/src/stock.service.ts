import { ConflictException, Injectable } from '@nestjs/common';
import { type Lock, LockService } from 'nestjs-redlock';
import { Payments } from './payments.js';
import { StockTable } from './stock.table.js';

@Injectable()
export class StockService {
  constructor(
    private readonly locks: LockService,
    private readonly table: StockTable,
    private readonly payments: Payments,
  ) {}

  /** For display: it may be out of date, and must not be written back. */
  count(item: string): number {
    return this.table.look(item);
  }

  async put(item: string, count: number): Promise<void> {
    await this.locked(item, (lock) => this.table.write(item, count, lock));
  }

  /** Sells one item, and resolves with the remaining stock. */
  async sell(item: string): Promise<number> {
    return this.locked(item, async (lock) => {
      const count = this.table.read(item, lock);
      if (count === 0) throw new ConflictException(`${item} is sold out`);
      await this.payments.charge(item);
      // However long this process is paused here: if another one has sold meanwhile, the write is refused.
      this.table.write(item, count - 1, lock);
      return count - 1;
    });
  }

  private locked<T>(item: string, work: (lock: Lock) => T | Promise<T>): Promise<T> {
    return this.locks.withLock(`stock:${item}`, async (lock) => {
      // Before any transaction begins: no outage of the masters holds one open.
      await lock.fencingToken();
      return work(lock);
    });
  }
}
