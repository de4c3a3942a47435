import { ClsPluginTransactional } from '@nestjs-cls/transactional';
import { type DynamicModule, Global, Module } from '@nestjs/common';
import { ClsModule } from 'nestjs-cls';
import { RedlockModule, type RedlockModuleOptions } from 'nestjs-redlock';
import { Database } from './database/database.js';
import { SqlAdapter } from './database/sql.adapter.js';
import { LockInsideSales } from './sales/lock-inside.sales.js';
import { LockOutsideSales } from './sales/lock-outside.sales.js';
import { Payments } from './sales/payments.js';
import { SalesController } from './sales/sales.controller.js';
import { Sales } from './sales/sales.js';

export interface AppOptions {
  database: Database;
  locks: RedlockModuleOptions;
  /** `'inside'` is wrong, and only shows the consequences. */
  lock?: 'outside' | 'inside';
  payments?: Payments;
}

@Global()
@Module({
  imports: [ClsModule.forRoot({ plugins: [new ClsPluginTransactional({ adapter: new SqlAdapter() })] })],
  controllers: [SalesController],
})
export class AppModule {
  static register({ database, locks, lock = 'outside', payments = new Payments() }: AppOptions): DynamicModule {
    return {
      module: AppModule,
      imports: [RedlockModule.forRoot(locks)],
      providers: [
        { provide: Database, useValue: database },
        { provide: Payments, useValue: payments },
        { provide: Sales, useClass: lock === 'outside' ? LockOutsideSales : LockInsideSales },
      ],
      exports: [Database],
    };
  }
}
