import { type DynamicModule, type MiddlewareConsumer, Module, type NestModule } from '@nestjs/common';
import { RedlockModule, type RedlockModuleOptions } from 'nestjs-redlock';
import { CartsController } from './carts.controller.js';
import { Payments } from './payments.js';
import { TenantMiddleware } from './tenant.middleware.js';

@Module({ controllers: [CartsController] })
export class AppModule implements NestModule {
  static register(locks: RedlockModuleOptions, payments = new Payments()): DynamicModule {
    return {
      module: AppModule,
      imports: [RedlockModule.forRoot(locks)],
      providers: [{ provide: Payments, useValue: payments }],
    };
  }

  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(TenantMiddleware).forRoutes('*all');
  }
}
