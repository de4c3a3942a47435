import { setTimeout as sleep } from 'node:timers/promises';
import { Controller, Param, Post } from '@nestjs/common';
import { WithLock } from 'nestjs-redlock';

@Controller('orders')
export class OrdersController {
  /** Takes long enough to be looked at. */
  @Post(':id/shipment')
  @WithLock((id: string) => `order:${id}`, { wait: '1m' })
  async ship(@Param('id') id: string): Promise<string> {
    await sleep(20_000);
    return `order ${id} is shipped`;
  }
}
