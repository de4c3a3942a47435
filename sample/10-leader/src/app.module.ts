import { type DynamicModule, Module } from '@nestjs/common';
import { RedlockModule } from 'nestjs-redlock';
import { RedlockLeaderModule } from 'nestjs-redlock/leader';
import type { Config } from './config.js';
import { Outbox } from './outbox.js';
import { Relay } from './relay.js';

@Module({ providers: [Relay] })
export class AppModule {
  static register({ store, locks }: Config): DynamicModule {
    return {
      module: AppModule,
      imports: [RedlockModule.forRoot(locks), RedlockLeaderModule],
      providers: [{ provide: Outbox, useValue: new Outbox(store) }],
    };
  }
}
