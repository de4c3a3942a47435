import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { Leader, type Leadership } from 'nestjs-redlock/leader';
import { Outbox } from './outbox.js';

/** Sends the messages of the outbox, in their order: on one instance, which leads. */
@Injectable()
export class Relay {
  private readonly logger = new Logger(Relay.name);

  constructor(private readonly outbox: Outbox) {}

  @Leader('outbox', { data: () => ({ pid: process.pid }) })
  async relay({ term, signal }: Leadership): Promise<void> {
    for (;;) {
      const message = this.outbox.next();
      // Whatever happens during this pause: the outbox refuses the write of a term that is over.
      await sleep(50, undefined, { signal });
      if (!this.outbox.send(message, term)) this.logger.warn(`message ${message} refused: term ${term} is over`);
    }
  }
}
