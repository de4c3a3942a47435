import { type DynamicModule, Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { RedlockModule, type RedlockModuleOptions } from 'nestjs-redlock';
import { RedlockScheduleModule } from 'nestjs-redlock/schedule';
import { ImportJob } from './import.job.js';
import { JobsController } from './jobs.controller.js';
import { ReportJob } from './report.job.js';
import { Store } from './store.js';

export interface Config {
  /** Name of the instance, also in the history of the jobs. */
  readonly instance: string;
  /** A folder that all instances share. */
  readonly store: string;
  readonly locks: RedlockModuleOptions;
}

@Module({ controllers: [JobsController], providers: [ReportJob, ImportJob] })
export class AppModule {
  static register({ instance, store, locks }: Config): DynamicModule {
    return {
      module: AppModule,
      imports: [
        // New masters, and those that were restarted, vote after one ttl.
        RedlockModule.forRoot({ ttl: '4s', instance, ...locks }),
        ScheduleModule.forRoot(),
        RedlockScheduleModule,
      ],
      providers: [{ provide: Store, useValue: new Store(store, instance) }],
    };
  }
}
