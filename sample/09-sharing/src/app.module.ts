import { type DynamicModule, Module } from '@nestjs/common';
import { RedlockModule, type RedlockModuleOptions } from 'nestjs-redlock';
import { Carrier } from './carrier.js';
import { LabelsController } from './labels.controller.js';
import { PriceStore } from './price.store.js';
import { PricesController } from './prices.controller.js';

/** What the instances of the application share. */
export interface Surroundings {
  readonly locks: RedlockModuleOptions;
  readonly carrier: Carrier;
  readonly prices: PriceStore;
}

@Module({ controllers: [LabelsController, PricesController] })
export class AppModule {
  static register({ locks, carrier, prices }: Surroundings): DynamicModule {
    return {
      module: AppModule,
      imports: [RedlockModule.forRoot(locks)],
      providers: [
        { provide: Carrier, useValue: carrier },
        { provide: PriceStore, useValue: prices },
      ],
    };
  }
}
