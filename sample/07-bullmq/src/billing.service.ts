import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';

export interface Invoice {
  customer: string;
  amount: number;
}

/** Represents a billing system. It is slow, and two calls for one customer must not overlap. */
@Injectable()
export class BillingService {
  async charge(_invoice: Invoice): Promise<void> {
    await sleep(200);
  }
}
