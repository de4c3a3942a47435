import { type DynamicModule, Module } from '@nestjs/common';
import { RedlockModule, type RedlockModuleOptions } from 'nestjs-redlock';
import { Carrier } from './carrier.js';
import { LabelsController } from './labels.controller.js';
import { PriceStore } from './price.store.js';
import { PricesController } from './prices.controller.js';

@Module({ controllers: [LabelsController, PricesController] })
export class AppModule {
  static register(locks: RedlockModuleOptions, prices: PriceStore, carrier = new Carrier()): DynamicModule {
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
