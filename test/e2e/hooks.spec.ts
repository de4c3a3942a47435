import 'reflect-metadata';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  Injectable,
  Module,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
  type OnModuleInit,
  type Type,
} from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import type { TestingModule } from '@nestjs/testing';
import { Elections, Leader, type Leadership, RedlockLeaderModule } from 'nestjs-redlock/leader';
import { type JobRun, LockedInterval, RedlockScheduleModule } from 'nestjs-redlock/schedule';
import { ManualClock } from 'nestjs-redlock/testing';
import { boot, closeAll } from './support/applications.js';
import { Locks } from './support/locks.js';

const later = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));
let seen: string[] = [];
let clock: ManualClock;

@Injectable()
class Outbox {
  private done: Promise<void> | undefined;

  @Leader('outbox')
  relay({ signal, ended }: Leadership): Promise<void> {
    seen.push('the method begins');
    signal.addEventListener('abort', () => seen.push('the signal aborts'));
    return (this.done = ended);
  }

  async onModuleDestroy(): Promise<void> {
    await this.done;
    seen.push('the method has ended');
  }
}

@Injectable()
class Report {
  private done: Promise<void> | undefined;

  @LockedInterval('1s', { name: 'report' })
  run({ signal }: JobRun): Promise<void> {
    seen.push('the method begins');
    return (this.done = new Promise((resolve) =>
      signal.addEventListener('abort', () => {
        seen.push('the signal aborts');
        resolve();
      }),
    ));
  }

  async onModuleDestroy(): Promise<void> {
    await this.done;
    seen.push('the method has ended');
  }
}

/** In the root module: the last to boot, and the first to be destroyed. */
@Injectable()
class Root implements OnApplicationBootstrap, OnModuleDestroy {
  async onApplicationBootstrap(): Promise<void> {
    await clock.advance(2_000);
    seen.push('the application is ready');
  }

  async onModuleDestroy(): Promise<void> {
    seen.push('the application is being destroyed');
    await later();
  }
}

@Injectable()
class Broken {
  async onApplicationBootstrap(): Promise<void> {
    await later();
    throw new Error('no database');
  }
}

@Module({ imports: [RedlockLeaderModule], providers: [Outbox] })
class OutboxModule {}

@Module({ imports: [ScheduleModule.forRoot(), RedlockScheduleModule], providers: [Report] })
class ReportModule {}

function start(feature: Type, root: Type): Promise<TestingModule> {
  clock = new ManualClock();
  const locks = new Locks(3, { clock, drainTimeout: 0 });
  return boot({ imports: [locks.module(), feature], providers: [root] });
}

afterEach(async () => {
  await closeAll();
  seen = [];
});

describe.each([
  ['@Leader', OutboxModule],
  ['@LockedInterval', ReportModule],
])('A method under %s', (_, feature) => {
  it('runs after all hooks of the boot, and is asked to end before all hooks of the shutdown', async () => {
    const app = await start(feature, Root);
    await clock.advance(1_100);
    expect(seen).toEqual(['the application is ready', 'the method begins']);
    seen = [];
    await app.close();
    expect(seen).toEqual(['the signal aborts', 'the application is being destroyed', 'the method has ended']);
  });

  it('does not run after a boot that has failed', async () => {
    await expect(start(feature, Broken)).rejects.toThrow('no database');
    await clock.advance(3_000);
    expect(seen).toEqual([]);
  });
});

@Injectable()
class Asking implements OnModuleInit {
  constructor(private readonly elections: Elections) {}

  onModuleInit(): void {
    seen.push(`leads: ${this.elections.isLeader('outbox')}`);
  }
}

it('An instance knows during its boot that it does not lead yet', async () => {
  await start(OutboxModule, Asking);
  expect(seen).toEqual(['leads: false']);
});
