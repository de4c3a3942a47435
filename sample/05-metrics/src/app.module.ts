import { type DynamicModule, Module } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { RedlockModule, type RedlockModuleOptions } from 'nestjs-redlock';
import { openTelemetry } from 'nestjs-redlock/opentelemetry';
import { RedlockHealthModule } from 'nestjs-redlock/terminus';
import { HealthController } from './health/health.controller.js';
import { MetricsController } from './metrics/metrics.controller.js';
import { Metrics } from './metrics/metrics.js';
import { OrdersController } from './orders/orders.controller.js';
import { OrdersService } from './orders/orders.service.js';

@Module({ controllers: [OrdersController, MetricsController, HealthController], providers: [OrdersService] })
export class AppModule {
  static register(locks: RedlockModuleOptions): DynamicModule {
    const metrics = new Metrics();
    const observers = [openTelemetry({ meterProvider: metrics.provider })];
    return {
      module: AppModule,
      imports: [RedlockModule.forRoot({ ...locks, observers }), RedlockHealthModule, TerminusModule],
      providers: [{ provide: Metrics, useValue: metrics }],
    };
  }
}
