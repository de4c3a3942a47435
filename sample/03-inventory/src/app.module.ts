import { type DynamicModule, Module } from '@nestjs/common';
import { RedlockModule, type RedlockModuleOptions } from 'nestjs-redlock';
import { Payments } from './payments.js';
import { StockController } from './stock.controller.js';
import { StockService } from './stock.service.js';
import { StockTable } from './stock.table.js';

@Module({ controllers: [StockController], providers: [StockService, Payments] })
export class AppModule {
  /** @param path of an SQLite file that all instances open */
  static register(locks: RedlockModuleOptions, path: string): DynamicModule {
    return {
      module: AppModule,
      imports: [RedlockModule.forRoot(locks)],
      providers: [{ provide: StockTable, useFactory: () => new StockTable(path) }],
    };
  }
}
