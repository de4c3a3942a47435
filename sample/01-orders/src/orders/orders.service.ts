import { setTimeout as sleep } from 'node:timers/promises';
import { ConflictException, Injectable, NotFoundException } from '@nestjs/common';
import { WithLock } from 'nestjs-redlock';
import { Database, type Order } from '../database.js';

/** Response time of the carrier, in milliseconds. */
const BOOKING_TIME = 20;

@Injectable()
export class OrdersService {
  constructor(private readonly database: Database) {}

  async place(orderId: string): Promise<Order> {
    const order: Order = { status: 'paid', parcels: [] };
    await this.database.orders.save(orderId, order);
    return order;
  }

  async find(orderId: string): Promise<Order> {
    const order = await this.database.orders.find(orderId);
    if (!order) throw new NotFoundException(`No order ${orderId}`);
    return order;
  }

  /** Books a parcel only once per order, because each booking costs money. */
  @WithLock((orderId: string) => `order:${orderId}`, '2s')
  async ship(orderId: string, by: string): Promise<Order> {
    const order = await this.find(orderId);
    if (order.status === 'shipped') throw new ConflictException(`Order ${orderId} is shipped already`);

    await sleep(BOOKING_TIME);
    order.status = 'shipped';
    order.parcels.push({ by, trackingNumber: crypto.randomUUID() });
    await this.database.orders.save(orderId, order);
    return order;
  }
}
