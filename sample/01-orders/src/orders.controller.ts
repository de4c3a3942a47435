import { setTimeout as sleep } from 'node:timers/promises';
import {
  Body,
  ConflictException,
  Controller,
  type ExecutionContext,
  Param,
  Post,
  UseInterceptors,
} from '@nestjs/common';
import { LockInterceptor, WithLock } from 'nestjs-redlock';
import { type Order, OrdersTable } from './orders.table.js';

const orderOf = (context: ExecutionContext): string =>
  `order:${context.switchToHttp().getRequest<{ params: { id: string } }>().params.id}`;

@Controller('orders/:id')
export class OrdersController {
  constructor(private readonly table: OrdersTable) {}

  /** Waits for its turn. */
  @Post('items')
  @UseInterceptors(LockInterceptor(orderOf))
  async add(@Param('id') id: string, @Body('sku') sku: string): Promise<Order> {
    const order = await this.table.find(id);
    if (order.isPaid) throw new ConflictException('paid');
    return this.table.save({ ...order, items: [...order.items, sku] });
  }

  /** Does not wait: a second payment gets 423 at once. */
  @Post('payment')
  @UseInterceptors(LockInterceptor(orderOf, { wait: 0 }))
  async pay(@Param('id') id: string): Promise<Order> {
    const order = await this.table.find(id);
    if (order.isPaid) throw new ConflictException('paid');
    await sleep(150);
    return this.table.save({ ...order, isPaid: true });
  }

  /** Books a parcel only once per order, because each booking costs money. */
  @Post('shipment')
  @WithLock((id: string) => `order:${id}`)
  async ship(@Param('id') id: string): Promise<Order> {
    const order = await this.table.find(id);
    if (!order.isPaid || order.parcel) throw new ConflictException(order.isPaid ? 'shipped' : 'not paid');
    await sleep(20);
    return this.table.save({ ...order, parcel: crypto.randomUUID() });
  }
}
