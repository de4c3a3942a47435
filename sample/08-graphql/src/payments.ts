import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';

/** Represents a payment provider. It is slow, and two calls for one cart must not overlap. */
@Injectable()
export class Payments {
  async charge(_cart: string): Promise<void> {
    await sleep(150);
  }
}
