import { BullModule } from '@nestjs/bullmq';
import { type DynamicModule, Module } from '@nestjs/common';
import { RedlockModule, type RedlockModuleOptions } from 'nestjs-redlock';
import { BillingService } from './billing.service.js';
import { InvoiceProcessor } from './invoice.processor.js';
import { QUEUE } from './queue.js';

@Module({ imports: [BullModule.registerQueue({ name: QUEUE })], providers: [InvoiceProcessor] })
export class AppModule {
  /** @param queue URL of the Redis server for the queue, which is not one of the masters */
  static register(queue: string, locks: RedlockModuleOptions, billing = new BillingService()): DynamicModule {
    return {
      module: AppModule,
      imports: [BullModule.forRoot({ connection: { url: queue } }), RedlockModule.forRoot(locks)],
      providers: [{ provide: BillingService, useValue: billing }],
    };
  }
}
