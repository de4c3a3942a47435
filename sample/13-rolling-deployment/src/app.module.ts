import { type DynamicModule, Module } from '@nestjs/common';
import { RedlockModule } from 'nestjs-redlock';
import type { Config } from './config.js';
import { CONFIG } from './config.token.js';
import { ImportWorker } from './import.worker.js';
import { Ledger } from './ledger.js';

@Module({ providers: [ImportWorker] })
export class AppModule {
  static register(config: Config): DynamicModule {
    return {
      module: AppModule,
      imports: [RedlockModule.forRoot(config.locks)],
      providers: [
        { provide: CONFIG, useValue: config },
        { provide: Ledger, useValue: new Ledger(config.store) },
      ],
    };
  }
}
