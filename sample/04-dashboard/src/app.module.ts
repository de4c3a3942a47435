import { type DynamicModule, Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { RedlockModule } from 'nestjs-redlock';
import type { Config } from './config.js';
import { CONFIG } from './config.token.js';
import { InstancesController } from './instances/instances.controller.js';
import { Instances } from './instances/instances.js';
import { EventsController } from './live/events.controller.js';
import { LockBoard } from './live/lock-board.js';
import { Pulse } from './live/pulse.js';
import { Timeline } from './live/timeline.js';
import { LocalMasters } from './masters/local-masters.js';
import { MastersController } from './masters/masters.controller.js';
import { OwnPageGuard } from './own-page.guard.js';

@Module({
  controllers: [EventsController, MastersController, InstancesController],
  providers: [Timeline, LockBoard, Instances, Pulse, { provide: APP_GUARD, useClass: OwnPageGuard }],
})
export class AppModule {
  static register(config: Config, masters: LocalMasters): DynamicModule {
    return {
      module: AppModule,
      // The dashboard locks nothing. It only asks for the state of the masters and their locks.
      imports: [RedlockModule.forRoot({ ...config.locks, masters: masters.urls })],
      providers: [
        { provide: CONFIG, useValue: config },
        { provide: LocalMasters, useValue: masters },
      ],
    };
  }
}
