import { setTimeout as sleep } from 'node:timers/promises';

export interface Order {
  readonly id: string;
  readonly items: readonly string[];
  readonly isPaid: boolean;
  readonly parcel?: string;
}

/**
 * Represents a table of a database that instances share. Reads and writes are single queries, and no transaction joins
 * a read with the write that depends on it.
 */
export class OrdersTable {
  private readonly rows = new Map<string, Order>();

  async find(id: string): Promise<Order> {
    await sleep(3);
    return this.rows.get(id) ?? { id, items: [], isPaid: false };
  }

  async save(order: Order): Promise<Order> {
    await sleep(3);
    this.rows.set(order.id, order);
    return order;
  }
}
