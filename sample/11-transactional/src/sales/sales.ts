import { TransactionHost } from '@nestjs-cls/transactional';
import { ConflictException, Inject, Injectable } from '@nestjs/common';
import type { SqlAdapter } from '../database/sql.adapter.js';
import { Payments } from './payments.js';

/** Sells one item. The subclasses differ only in the order of two decorators. */
@Injectable()
export abstract class Sales {
  constructor(
    @Inject(TransactionHost) protected readonly transactions: TransactionHost<SqlAdapter>,
    private readonly payments: Payments,
  ) {}

  /** Resolves with the remaining stock. */
  abstract sell(item: string, customer: string): Promise<number>;

  /** Reads, charges, and writes the result: without a lock, a sale in between sells the same item again. */
  protected async sellOne(item: string, customer: string): Promise<number> {
    const { tx } = this.transactions;
    const [stock] = await tx.query<{ count: number }>('SELECT count FROM stock WHERE item = $1', item);
    if (!stock || stock.count === 0) throw new ConflictException(`${item} is sold out`);
    await this.payments.charge(customer);
    await tx.query('UPDATE stock SET count = $2 WHERE item = $1', item, stock.count - 1);
    return stock.count - 1;
  }
}
