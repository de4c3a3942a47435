import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';

/** Represents the API of a third party. It refuses the sixth concurrent call of a customer. */
@Injectable()
export class Carrier {
  /** @throws the reason of the signal */
  async label(order: string, signal: AbortSignal | undefined): Promise<string> {
    await sleep(300, undefined, signal && { signal });
    return `label of ${order}`;
  }
}
