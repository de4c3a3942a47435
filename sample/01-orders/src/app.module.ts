import { type DynamicModule, Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { RedlockModule, type RedlockModuleOptions } from 'nestjs-redlock';
import { AccountsController } from './accounts/accounts.controller.js';
import { AccountsService } from './accounts/accounts.service.js';
import { CartsController } from './carts/carts.controller.js';
import { CartsService } from './carts/carts.service.js';
import { Database } from './database.js';
import { LockNotAcquiredFilter } from './lock-not-acquired.filter.js';
import { OrdersController } from './orders/orders.controller.js';
import { OrdersService } from './orders/orders.service.js';

@Module({
  controllers: [OrdersController, CartsController, AccountsController],
  providers: [OrdersService, CartsService, AccountsService, { provide: APP_FILTER, useClass: LockNotAcquiredFilter }],
})
export class AppModule {
  static register(locks: RedlockModuleOptions, database = new Database()): DynamicModule {
    return {
      module: AppModule,
      imports: [RedlockModule.forRoot(locks)],
      providers: [{ provide: Database, useValue: database }],
    };
  }
}
