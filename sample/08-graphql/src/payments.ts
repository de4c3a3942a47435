import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';

/** Stands for a payment provider: it takes its time, and a cart must not be paid twice. */
@Injectable()
export class Payments {
  async charge(_cart: string): Promise<void> {
    await sleep(150);
  }
}
