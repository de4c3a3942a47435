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
import type { TestingModule } from '@nestjs/testing';
import { Elections, Leader, type Leadership, RedlockLeaderModule } from 'nestjs-redlock/leader';
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

/** In the root module: the last to boot, and the first to be destroyed. */
@Injectable()
class Root implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy {
  constructor(private readonly elections: Elections) {}

  onModuleInit(): void {
    seen.push(`leads: ${this.elections.isLeader('outbox')}`);
  }

  async onApplicationBootstrap(): Promise<void> {
    await later();
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

@Module({ providers: [Outbox] })
class OutboxModule {}

function start(root: Type): Promise<TestingModule> {
  clock = new ManualClock();
  const locks = new Locks(3, { clock, drainTimeout: 0 });
  return boot({ imports: [locks.module(), RedlockLeaderModule, OutboxModule], providers: [root] });
}

afterEach(async () => {
  await closeAll();
  seen = [];
});

describe('A method under @Leader', () => {
  it('runs after all hooks of the boot, and is asked to end before all hooks of the shutdown', async () => {
    const app = await start(Root);
    await clock.advance(10);
    expect(seen).toEqual(['leads: false', 'the application is ready', 'the method begins']);
    seen = [];
    await app.close();
    expect(seen).toEqual(['the signal aborts', 'the application is being destroyed', 'the method has ended']);
  });

  it('does not run after a boot that has failed', async () => {
    await expect(start(Broken)).rejects.toThrow('no database');
    await clock.advance(1_000);
    expect(seen).toEqual([]);
  });
});
