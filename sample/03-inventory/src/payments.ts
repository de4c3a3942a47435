import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';

/** Represents a payment provider, which no transaction can wait for. */
@Injectable()
export class Payments {
  async charge(_item: string): Promise<void> {
    await sleep(50);
  }
}
