import { Transactional } from '@nestjs-cls/transactional';
import { Injectable } from '@nestjs/common';
import { WithLock } from 'nestjs-redlock';
import { Sales } from './sales.js';

/** Lock, begin, work, commit, release: the next holder reads the committed data. */
@Injectable()
export class LockOutsideSales extends Sales {
  @WithLock((item: string) => `stock:${item}`, '5s')
  @Transactional()
  async sell(item: string, customer: string): Promise<number> {
    return this.sellOne(item, customer);
  }
}
