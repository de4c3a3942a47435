import { afterEach, describe, expect, it } from '@jest/globals';
import {
  applyDecorators,
  type DynamicModule,
  Injectable,
  Module,
  type ModuleMetadata,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
  type OnModuleInit,
  type Type,
} from '@nestjs/common';
import { LazyModuleLoader, NestFactory } from '@nestjs/core';
import { Transport } from '@nestjs/microservices';
import { ScheduleModule } from '@nestjs/schedule';
import { Test, type TestingModule } from '@nestjs/testing';
import { LockService, RedlockModule } from 'nestjs-redlock';
import { Elections, Leader, type Leadership, RedlockLeaderModule } from 'nestjs-redlock/leader';
import { type JobRun, LockedCron, LockedInterval, RedlockScheduleModule } from 'nestjs-redlock/schedule';
import { ManualClock } from 'nestjs-redlock/testing';
import { sharedMasters } from '../integration/support/shared-masters.js';
import { command } from '../support/command.js';
import { compileLibrary, start } from '../support/compiled.js';
import { deadPort } from '../support/dead-port.js';
import { eventually } from '../support/eventually.js';
import { FAILURES, failingApp } from '../support/failed-boots.js';
import { shared } from '../support/shared.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { boot, closeAll, compile } from './support/applications.js';
import { type Deferred, deferred, outcomeOf } from './support/deferred.js';
import { Locks, LocksPerTest } from './support/locks.js';

const QUIET = { logger: false, abortOnError: false };
// Nest declares it as a class.
const SILENT = QUIET as never;
@Module({})
class App {}

type Boot = (module: DynamicModule) => Promise<unknown>;

const BOOTS: Readonly<Record<string, Boot>> = {
  'an application': async (module) => (await NestFactory.create(module, SILENT)).init(),
  'an application context': (module) => NestFactory.createApplicationContext(module, SILENT),
  'a microservice': async (module) => {
    const options = { port: 0, host: '127.0.0.1' };
    const silent = { ...QUIET, transport: Transport.TCP, options } as never;
    await (await NestFactory.createMicroservice(module, silent)).listen();
  },
  'a testing module': async (module) => (await Test.createTestingModule({ imports: [module] }).compile()).init(),
};

const masters = sharedMasters(1);

const HERE = ['a factory rejects', 'a hook onModuleInit rejects', 'a hook onApplicationBootstrap rejects'];

describe('A boot that fails', () => {
  const compiled = shared(compileLibrary);
  const url = () => masters.urls[0]!;
  // Connections, subscriptions included, beside the one that asks.
  const connections = async () =>
    String(await command(masters.servers[0]!.port, 'CLIENT', 'LIST'))
      .trim()
      .split('\n').length - 1;

  async function expectClosed(start: () => Promise<unknown>): Promise<void> {
    expect(await connections()).toBe(0);
    expect(await outcomeOf(start())).toBeInstanceOf(Error);
    await eventually(async () => (await connections()) === 0);
  }

  it.each(Object.keys(FAILURES))('of an application closes all lock services: %s', (failure) =>
    expectClosed(() => BOOTS['an application']!(failingApp(url(), FAILURES[failure]!(url())))),
  );

  it.each(
    Object.keys(BOOTS)
      .slice(1)
      .flatMap((kind) => HERE.map((failure) => [kind, failure])),
  )('of %s closes all lock services: %s', (kind, failure) =>
    expectClosed(() => BOOTS[kind]!(failingApp(url(), FAILURES[failure]!(url())))),
  );

  it('does not start a lock service whose options come later', async () => {
    const options = deferred<{ masters: string[] }>();
    const asked = deferred();
    const useFactory = () => {
      asked.resolve();
      return options.promise;
    };
    const failing = {
      provide: 'database',
      useFactory: () => asked.promise.then(() => Promise.reject(new Error('no'))),
    };
    await expectClosed(() =>
      NestFactory.createApplicationContext(
        { module: App, imports: [RedlockModule.forRootAsync({ useFactory })], providers: [failing] },
        SILENT,
      ),
    );
    options.resolve({ masters: [url()] });
    // A service that starts connects within a few of these.
    for (let i = 0; i < 20; i++) await command(masters.servers[0]!.port, 'PING');
    expect(await connections()).toBe(0);
  });

  it('ends the wait for masters that do not answer', async () => {
    await using proxy = await TcpProxy.to(await deadPort());
    const waiting = RedlockModule.forRoot({ name: 'waiting', masters: [proxy.url], connectTimeout: '10m' });
    const failing = { provide: 'database', useFactory: () => Promise.reject(new Error('no')) };
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    const before = timers();
    await expectClosed(() =>
      NestFactory.createApplicationContext({ module: App, imports: [waiting], providers: [failing] }, SILENT),
    );
    await eventually(() => timers() <= before);
  });

  it('leaves other applications of the process alone, and those that load a module lazily', async () => {
    const app = await boot({ imports: [RedlockModule.forRoot({ masters: [url()], restartGuard: false })] });
    expect(await outcomeOf(BOOTS['an application']!(failingApp(url(), FAILURES['a factory rejects']!(url()))))).toEqual(
      new Error('no'),
    );
    @Module(FAILURES['a factory rejects']!(url()))
    class Lazy {}
    expect(await outcomeOf(app.get(LazyModuleLoader).load(() => Lazy))).toEqual(new Error('no'));
    await expect(app.get(LockService).withLock('a', '5s', () => 'done')).resolves.toBe('done');
    await closeAll();
    await eventually(async () => (await connections()) === 0);
  });

  it('lets the process end by itself', async () => {
    await using program = start(compiled(), 'failed-boot', { url: url() });
    expect(Number(await program.line())).toBe(Object.keys(FAILURES).length);
    expect(await program.ended).toBe(0);
  }, 60_000);
});

describe('An application that is closed while it boots', () => {
  const locks = new LocksPerTest(1);
  let initializing: Deferred;
  let go: Deferred;

  @Injectable()
  class Slow implements OnModuleInit {
    async onModuleInit(): Promise<void> {
      initializing.resolve();
      await go.promise;
    }
  }
  @Injectable()
  class Work {
    @LockedCron('* * * * *', { name: 'job' })
    async tick(): Promise<void> {}

    @Leader('election')
    async lead(): Promise<void> {}
  }

  it('starts neither jobs nor elections, and leaves no timer', async () => {
    [initializing, go] = [deferred(), deferred()];
    const module = await compile({
      imports: [locks.module(), ScheduleModule.forRoot(), RedlockScheduleModule, RedlockLeaderModule],
      providers: [Slow, Work],
    });
    // Nest waits for the boot of other kinds of applications.
    const app = module.createNestApplication();
    const booting = app.init();
    await initializing.promise;
    await app.close();
    go.resolve();
    await outcomeOf(booting);
    expect(locks.clock.pendingTimers).toBe(0);
  });

  it('leaves no timer of a lazy connection to a master that hangs', async () => {
    const [server] = masters.servers;
    server!.pause();
    const options = {
      masters: [masters.urls[0]!],
      clock: locks.clock,
      lazyConnect: true,
      connectTimeout: '10m',
    } as const;
    const app = await boot({ imports: [RedlockModule.forRoot(options)] });
    await Promise.all([app.close(), locks.clock.advance(10_000)]);
    expect(locks.clock.pendingTimers).toBe(0);
    server!.resume();
  });
});

const later = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));
let seen: string[] = [];
let clock: ManualClock;

/** A module with a method that lasts until it is asked to end, and that its object awaits. */
function featureOf(decorator: MethodDecorator, ...imports: NonNullable<ModuleMetadata['imports']>): Type {
  @Injectable()
  class Work {
    private done: Promise<void> | undefined;

    @applyDecorators(decorator)
    run({ signal }: Leadership | JobRun): Promise<void> {
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
  @Module({ imports, providers: [Work] })
  class Feature {}
  return Feature;
}

const OutboxModule = featureOf(Leader('outbox'), RedlockLeaderModule);
const ReportModule = featureOf(
  LockedInterval('1s', { name: 'report' }),
  ...[ScheduleModule.forRoot(), RedlockScheduleModule],
);

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

function bootBeside(feature: Type, root: Type): Promise<TestingModule> {
  clock = new ManualClock();
  const locks = new Locks(3, { clock, drainTimeout: 0 });
  return boot({ imports: [locks.module(), feature], providers: [root] });
}

afterEach(() => {
  seen = [];
});

describe.each([
  ['@Leader', OutboxModule],
  ['@LockedInterval', ReportModule],
])('A method under %s', (_, feature) => {
  it('runs after all hooks of the boot, and is asked to end before all hooks of the shutdown', async () => {
    const app = await bootBeside(feature, Root);
    await clock.advance(1_100);
    expect(seen).toEqual(['the application is ready', 'the method begins']);
    seen = [];
    await app.close();
    expect(seen).toEqual(['the signal aborts', 'the application is being destroyed', 'the method has ended']);
  });

  it('does not run after a boot that has failed', async () => {
    await expect(bootBeside(feature, Broken)).rejects.toThrow('no database');
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
  await bootBeside(OutboxModule, Asking);
  expect(seen).toEqual(['leads: false']);
});
