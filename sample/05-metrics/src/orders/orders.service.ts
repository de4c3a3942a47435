import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { WithLock } from 'nestjs-redlock';

/** Duration of a pickup by the carrier, in milliseconds. */
const PICKUP = 100;

@Injectable()
export class OrdersService {
  @WithLock((id: string) => `order:${id}`, { ttl: '2s', onLocked: 'skip' })
  async ship(id: string): Promise<{ shipped: string } | undefined> {
    await sleep(PICKUP);
    return { shipped: id };
  }
}
