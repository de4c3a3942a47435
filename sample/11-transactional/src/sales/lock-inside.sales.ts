import { Transactional } from '@nestjs-cls/transactional';
import { Injectable } from '@nestjs/common';
import { WithLock } from 'nestjs-redlock';
import { Sales } from './sales.js';

/** WRONG. Begin, lock, work, release, commit: the next holder does not see the write that is about to be committed. */
@Injectable()
export class LockInsideSales extends Sales {
  @Transactional()
  @WithLock((item: string) => `stock:${item}`, '2s')
  async sell(item: string, customer: string): Promise<number> {
    return this.sellOne(item, customer);
  }
}
