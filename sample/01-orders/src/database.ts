import { setTimeout as sleep } from 'node:timers/promises';

/** Duration of one query, in milliseconds: long enough for other requests to run between a read and a write. */
const QUERY_TIME = 3;

/**
 * Represents a table of a database that instances share. Reads and writes are single queries, and no transaction joins
 * a read with the write that depends on it.
 */
export class Table<Row> {
  private readonly rows = new Map<string, Row>();

  async find(id: string): Promise<Row | undefined> {
    await sleep(QUERY_TIME);
    return structuredClone(this.rows.get(id));
  }

  async save(id: string, row: Row): Promise<void> {
    await sleep(QUERY_TIME);
    this.rows.set(id, structuredClone(row));
  }
}

export interface Order {
  status: 'paid' | 'shipped';
  parcels: { by: string; trackingNumber: string }[];
}

export interface Cart {
  items: { sku: string; quantity: number }[];
  checkedOut: boolean;
}

export interface Account {
  balance: number;
}

export class Database {
  readonly orders = new Table<Order>();
  readonly carts = new Table<Cart>();
  readonly accounts = new Table<Account>();
}
