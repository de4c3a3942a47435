import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';

/** Represents a payment provider. Its charges do not roll back. */
@Injectable()
export class Payments {
  async charge(_customer: string): Promise<void> {
    await sleep(100);
  }
}
