import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';

/** Stands for a payment provider: what it has charged does not roll back. */
@Injectable()
export class Payments {
  async charge(_customer: string): Promise<void> {
    await sleep(100);
  }
}
