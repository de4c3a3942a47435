import { Transactional } from '@nestjs-cls/transactional';
import { Inject, Injectable } from '@nestjs/common';
import { type Lock, LockService, WithLock } from 'nestjs-redlock';
import { fence } from 'nestjs-redlock/sql';
import { Sales } from './sales.js';

/** Lock, begin, work, commit, release: the next holder reads the committed data. */
@Injectable()
export class LockOutsideSales extends Sales {
  @Inject(LockService) private readonly locks!: LockService;

  @WithLock((item: string) => `stock:${item}`, '2s')
  async sell(item: string, customer: string): Promise<number> {
    await this.lock.fencingToken(); // before the transaction
    return this.sellFenced(item, customer);
  }

  @Transactional()
  protected async sellFenced(item: string, customer: string): Promise<number> {
    await fence(this.lock, (sql, params) => this.transactions.tx.query(sql, ...params));
    return this.sellOne(item, customer);
  }

  private get lock(): Lock {
    const lock = this.locks.current();
    if (!lock) throw new Error('sell the item under its lock');
    return lock;
  }
}
