import { Body, Controller, Get, NotFoundException, Param, Put } from '@nestjs/common';
import { WithLock } from 'nestjs-redlock';
import { type Prices, PriceStore } from './price.store.js';

@Controller('prices')
export class PricesController {
  constructor(private readonly store: PriceStore) {}

  /** Any number of totals at the same time, on all instances, and none while the prices are replaced. */
  @Get(':items/total')
  @WithLock('prices', { mode: 'shared' })
  async total(@Param('items') items: string): Promise<string> {
    try {
      const prices = await Promise.all(items.split(',').map((item) => this.store.read(item)));
      return String(prices.reduce((sum, price) => sum + price, 0));
    } catch {
      throw new NotFoundException('an item has no price');
    }
  }

  /** Waits for the totals that have begun, and is not passed by those that come later. */
  @Put()
  @WithLock('prices', { wait: '10s' })
  async replace(@Body() prices: Prices): Promise<void> {
    await this.store.replace(prices);
  }
}
