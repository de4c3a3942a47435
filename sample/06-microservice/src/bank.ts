import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';

/** Represents the interface of a bank. It is slow, and two calls for one account must not overlap. */
@Injectable()
export class Bank {
  async book(_account: string, _amount: number): Promise<void> {
    await sleep(150);
  }
}
