import { type DynamicModule, Module } from '@nestjs/common';
import { RedlockModule } from 'nestjs-redlock';
import { JobRunner } from './job.runner.js';
import { JOBS } from './jobs.token.js';
import { reporter } from './reporter.js';
import type { Setup } from './setup.js';

@Module({ providers: [JobRunner] })
export class WorkerModule {
  static register({ masters, locks, jobs }: Setup): DynamicModule {
    return {
      module: WorkerModule,
      imports: [RedlockModule.forRoot({ ...locks, masters, observers: [reporter] })],
      providers: [{ provide: JOBS, useValue: jobs }],
    };
  }
}
