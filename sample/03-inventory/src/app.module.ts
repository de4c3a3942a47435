import { type DynamicModule, Module } from '@nestjs/common';
import { RedlockModule } from 'nestjs-redlock';
import type { Config } from './config.js';
import { CONFIG } from './config.token.js';
import { Database } from './database/database.js';
import { openDatabase } from './database/open-database.js';
import { StockController } from './stock/stock.controller.js';
import { StockService } from './stock/stock.service.js';
import { StockTable } from './stock/stock.table.js';

@Module({
  controllers: [StockController],
  providers: [StockService, StockTable],
})
export class AppModule {
  static register(config: Config): DynamicModule {
    return {
      module: AppModule,
      imports: [RedlockModule.forRoot(config.locks)],
      providers: [
        { provide: CONFIG, useValue: config },
        { provide: Database, useFactory: () => openDatabase(config.database) },
      ],
    };
  }
}
