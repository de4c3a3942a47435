import { type DynamicModule, Module } from '@nestjs/common';
import { RedlockModule, type RedlockModuleOptions } from 'nestjs-redlock';
import { AccountsController } from './accounts.controller.js';
import { Bank } from './bank.js';

@Module({ controllers: [AccountsController] })
export class AppModule {
  static register(locks: RedlockModuleOptions, bank = new Bank()): DynamicModule {
    return {
      module: AppModule,
      imports: [RedlockModule.forRoot(locks)],
      providers: [{ provide: Bank, useValue: bank }],
    };
  }
}
