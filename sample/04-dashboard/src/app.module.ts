import { type DynamicModule, Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { RedlockModule, type RedlockModuleOptions } from 'nestjs-redlock';
import { RedlockDashboardModule } from 'nestjs-redlock/dashboard';
import { RedlockScheduleModule } from 'nestjs-redlock/schedule';
import { AdminGuard } from './admin/admin.guard.js';
import { AdminModule } from './admin/admin.module.js';
import { ReportJob } from './report.job.js';
import { OrdersController } from './orders.controller.js';

@Module({ controllers: [OrdersController], providers: [ReportJob] })
export class AppModule {
  static register(locks: RedlockModuleOptions, password: string): DynamicModule {
    const admin = AdminModule.register(password);
    return {
      module: AppModule,
      imports: [
        RedlockModule.forRoot(locks),
        ScheduleModule.forRoot(),
        RedlockScheduleModule,
        RedlockDashboardModule.forRoot({
          path: 'admin/locks',
          imports: [admin],
          guards: [AdminGuard],
          actions: true,
          actor: () => 'admin',
        }),
      ],
    };
  }
}
