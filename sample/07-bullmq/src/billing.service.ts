import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';

export interface Invoice {
  customer: string;
  amount: number;
}

/** Stands for a billing system: it takes its time, and two calls for one customer must not overlap. */
@Injectable()
export class BillingService {
  async charge(_invoice: Invoice): Promise<void> {
    await sleep(200);
  }
}
