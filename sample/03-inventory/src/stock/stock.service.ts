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
    return this.table.read(item);
  }

  /** Sets the counted stock. */
  async put(item: string, count: number): Promise<void> {
    await this.locked(item, async (lock) => this.table.put(item, await lock.fencingToken(), count));
  }

  /** Sells one item, and resolves with the remaining stock. */
  async sell(item: string): Promise<number> {
    return this.locked(item, async (lock) => {
      const token = await lock.fencingToken();
      const count = await this.table.claim(item, token);
      if (count === 0) throw new ConflictException(`${item} is sold out`);
      await sleep(PAYMENT);
      // This check is good style because it is cheap. But no check can rule out that the process pauses right
      // afterwards.
      lock.assertHeld();
      if (this.config.freeze) freeze();
      await this.table.write(item, token, count - 1);
      return count - 1;
    });
  }

  private locked<T>(item: string, work: (lock: Lock) => Promise<T>): Promise<T> {
    return this.locks.withLock(`stock:${item}`, work);
  }
}
