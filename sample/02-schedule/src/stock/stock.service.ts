import { setTimeout as sleep } from 'node:timers/promises';
import { ConflictException, Injectable } from '@nestjs/common';
import { WithLock } from 'nestjs-redlock';
import { Store } from '../store.js';

/** How long a payment takes, in milliseconds. */
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

  /** Read, pay, write: whoever comes between sells what has been sold already. */
  @WithLock((item: string) => `stock:${item}`, '4s', { wait: '10s' })
  async sell(item: string): Promise<number> {
    const left = await this.left(item);
    if (left === 0) throw new ConflictException(`${item}: sold out`);
    await sleep(PAYMENT_TIME);
    await this.store.write(`stock-${item}`, left - 1);
    return left - 1;
  }
}
