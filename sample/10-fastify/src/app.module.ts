import { type DynamicModule, Module } from '@nestjs/common';
import { RedlockModule, type RedlockModuleOptions } from 'nestjs-redlock';
import { ExportsController } from './exports.controller.js';
import { ExportsService } from './exports.service.js';

@Module({ controllers: [ExportsController] })
export class AppModule {
  static register(locks: RedlockModuleOptions, exports = new ExportsService()): DynamicModule {
    return {
      module: AppModule,
      imports: [RedlockModule.forRoot(locks)],
      providers: [{ provide: ExportsService, useValue: exports }],
    };
  }
}
