import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';

/** Stands for the interface of a bank: it takes its time, and two calls for one account must not overlap. */
@Injectable()
export class Bank {
  async book(_account: string, _amount: number): Promise<void> {
    await sleep(150);
  }
}
