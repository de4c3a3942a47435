import { setTimeout as sleep } from 'node:timers/promises';
import { ConflictException, Injectable } from '@nestjs/common';
import { WithLock } from 'nestjs-redlock';
import { Store } from '../store.js';

/** Duration of a payment, in milliseconds. */
const PAYMENT_TIME = 5;

@Injectable()
export class StockService {
  constructor(private readonly store: Store) {}

  async left(item: string): Promise<number> {
    return (await this.store.read(`stock-${item}`)) ?? 0;
  }

  @WithLock((item: string) => `stock:${item}`, '4s')
  async fill(item: string, quantity: number): Promise<void> {
    await this.store.write(`stock-${item}`, quantity);
  }

  /** Reads, charges, writes: without the lock, a sale in between sells the same item again. */
  @WithLock((item: string) => `stock:${item}`, { ttl: '4s', wait: '10s' })
  async sell(item: string): Promise<number> {
    const left = await this.left(item);
    if (left === 0) throw new ConflictException(`${item}: sold out`);
    await sleep(PAYMENT_TIME);
    await this.store.write(`stock-${item}`, left - 1);
    return left - 1;
  }
}
