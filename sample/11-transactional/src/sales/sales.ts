import { TransactionHost } from '@nestjs-cls/transactional';
import { ConflictException, Inject, Injectable } from '@nestjs/common';
import type { SqlAdapter } from '../database/sql.adapter.js';
import { Payments } from './payments.js';

/** Sells one item. The classes that extend it differ in the order of two decorators and in nothing else. */
@Injectable()
export abstract class Sales {
  constructor(
    @Inject(TransactionHost) private readonly transactions: TransactionHost<SqlAdapter>,
    private readonly payments: Payments,
  ) {}

  /** Resolves with what is left. */
  abstract sell(item: string, customer: string): Promise<number>;

  /** Reads, charges, and writes what follows: whoever comes between sells what has been sold already. */
  protected async sellOne(item: string, customer: string): Promise<number> {
    const { tx } = this.transactions;
    const [stock] = await tx.query<{ count: number }>('SELECT count FROM stock WHERE item = $1', item);
    if (!stock || stock.count === 0) throw new ConflictException(`${item} is sold out`);
    await this.payments.charge(customer);
    await tx.query('UPDATE stock SET count = $2 WHERE item = $1', item, stock.count - 1);
    return stock.count - 1;
  }
}
