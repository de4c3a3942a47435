import { type DynamicModule, Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { LockExceptionFilter, RedlockModule, type RedlockModuleOptions } from 'nestjs-redlock';
import { OrdersController } from './orders.controller.js';
import { OrdersTable } from './orders.table.js';

@Module({
  controllers: [OrdersController],
  providers: [{ provide: APP_FILTER, useClass: LockExceptionFilter }],
})
export class AppModule {
  static register(locks: RedlockModuleOptions, table = new OrdersTable()): DynamicModule {
    return {
      module: AppModule,
      imports: [RedlockModule.forRoot(locks)],
      providers: [{ provide: OrdersTable, useValue: table }],
    };
  }
}
