import { type DynamicModule, Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { RedlockModule } from 'nestjs-redlock';
import { RedlockScheduleModule } from 'nestjs-redlock/schedule';
import { CONFIG } from './config.token.js';
import type { Config } from './config.js';
import { ImportJob } from './import/import.job.js';
import { JobsController } from './jobs/jobs.controller.js';
import { LatencyController } from './latency/latency.controller.js';
import { LatencyProbe } from './latency/latency.probe.js';
import { ReportJob } from './report/report.job.js';
import { StockController } from './stock/stock.controller.js';
import { StockService } from './stock/stock.service.js';
import { Store } from './store.js';

@Module({
  controllers: [JobsController, StockController, LatencyController],
  providers: [ReportJob, ImportJob, StockService, LatencyProbe],
})
export class AppModule {
  static register(config: Config): DynamicModule {
    return {
      module: AppModule,
      imports: [
        RedlockModule.forRoot(config.locks),
        ScheduleModule.forRoot({ cronJobs: config.timers, intervals: config.timers }),
        RedlockScheduleModule,
      ],
      providers: [
        { provide: CONFIG, useValue: config },
        { provide: Store, useValue: new Store(config.store, config.instance) },
      ],
    };
  }
}
