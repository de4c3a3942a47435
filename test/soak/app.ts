// One instance of the application. Argument: the task, as JSON. Announces its port, and ends by itself after SIGTERM.
import 'reflect-metadata';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { getHeapCodeStatistics } from 'node:v8';
import { BullModule, InjectQueue, OnWorkerEvent, Processor, WorkerHost } from '@nestjs/bullmq';
import {
  Controller,
  Get,
  Injectable,
  Module,
  type OnApplicationShutdown,
  Param,
  Post,
  StreamableFile,
  UseInterceptors,
} from '@nestjs/common';
import { APP_FILTER, NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { ScheduleModule } from '@nestjs/schedule';
import { DelayedError, type Job, Queue } from 'bullmq';
import {
  type Lock,
  LockExceptionFilter,
  LockInterceptor,
  LockNotAcquiredError,
  LockService,
  LockServiceStoppedError,
  QuorumUnavailableError,
  RedlockModule,
  WithLock,
} from 'nestjs-redlock';
import { RedlockLeaderModule } from 'nestjs-redlock/leader';
import { type JobRun, LockedCron, RedlockScheduleModule } from 'nestjs-redlock/schedule';
import { fence } from 'nestjs-redlock/sql';
import pg from 'pg';
import { note, Relay, runJob, task } from '../torture/boot.js';
import { now } from '../torture/trace.js';
import { STALL } from './trace.js';

const before = leftovers();

let ran = now();
setInterval(() => {
  const at = now();
  if (at - ran > STALL) note({ kind: 'stalled', from: ran, at });
  ran = at;
}, 20).unref();

let sections = 0;

/**
 * Begins a section of code that no other holder may be in. The function that it returns ends it: the section counts up to
 * the last moment at which the lock was certainly held.
 */
function enter(lock: Lock | undefined): () => void {
  if (!lock) throw new Error('there is no lock');
  const section = `${task.instance}.${++sections}`;
  const [keys, at] = [lock.resources, now()];
  note({ kind: 'granted', section, keys, mode: 'exclusive', asked: at, at, until: at });
  return () => {
    const until = now();
    if (lock.isHeld) note({ kind: 'looked', section, at: until, until });
    else note({ kind: 'lost', section, at: until, stalled: 0, why: String(lock.loss?.message) });
  };
}

async function work(lock: Lock | undefined, longest: number): Promise<void> {
  const leave = enter(lock);
  await sleep(Math.random() * longest);
  leave();
}

/** A key of the parameter of the route. */
function keyOf(prefix: string): Parameters<typeof LockInterceptor>[0] {
  return (context) => `${prefix}:${context.switchToHttp().getRequest<{ params: { id: string } }>().params.id}`;
}

@Injectable()
class Database implements OnApplicationShutdown {
  readonly pool = new pg.Pool({ connectionString: task.postgres, max: 5 });

  async transaction(work: (client: pg.PoolClient) => Promise<void>): Promise<void> {
    const client = await this.pool.connect();
    try {
      await client.query('BEGIN');
      await work(client);
      await client.query('COMMIT');
    } catch (error) {
      await client.query('ROLLBACK');
      throw error;
    } finally {
      client.release();
    }
  }

  onApplicationShutdown(): Promise<void> {
    return this.pool.end();
  }
}

@Injectable()
class Accounts {
  constructor(private readonly locks: LockService) {}

  @WithLock((id: string) => `account:${id}`, { wait: '1s' })
  async book(id: string): Promise<void> {
    await work(this.locks.current(`account:${id}`), 20);
  }
}

@Injectable()
class Stock {
  constructor(
    private readonly locks: LockService,
    private readonly database: Database,
  ) {}

  /** Writes one more than it has read: a late write, or one beside it, would undo another. */
  async sell(item: string, request: string): Promise<void> {
    await this.locks.withLock(`stock:${item}`, async (lock) => {
      const leave = enter(lock);
      const token = await lock.fencingToken();
      await this.database.transaction(async (client) => {
        await fence(lock, (sql, params) => client.query(sql, params), { dialect: 'postgres' });
        const { rows } = await client.query<{ count: number }>('SELECT count FROM stock WHERE item = $1', [item]);
        const base = rows[0]!.count;
        await sleep(Math.random() * 10);
        await client.query('UPDATE stock SET count = $2, version = version + 1 WHERE item = $1', [item, base + 1]);
        const row = [item, token, base, request];
        await client.query('INSERT INTO ledger SELECT $1, version, $2, $3, $4 FROM stock WHERE item = $1', row);
      });
      leave();
    });
  }
}

@Controller()
class Shop {
  constructor(
    private readonly locks: LockService,
    private readonly accounts: Accounts,
    private readonly stock: Stock,
    @InjectQueue('invoices') private readonly invoices: Queue,
  ) {}

  @Get('live')
  live(): string {
    return 'ok';
  }

  @Post('orders/:id')
  @UseInterceptors(LockInterceptor(keyOf('order')))
  async order(@Param('id') id: string): Promise<void> {
    await work(this.locks.current(`order:${id}`), 20);
  }

  @Get('reports/:id')
  @UseInterceptors(LockInterceptor(keyOf('report'), { wait: 0 }))
  report(@Param('id') id: string): StreamableFile {
    return new StreamableFile(Readable.from(rows(this.locks.current(`report:${id}`))));
  }

  @Post('accounts/:id')
  book(@Param('id') id: string): Promise<void> {
    return this.accounts.book(id);
  }

  @Post('stock/:item/:request')
  sell(@Param('item') item: string, @Param('request') request: string): Promise<void> {
    return this.stock.sell(item, request);
  }

  @Post('invoices/:customer/:request')
  async invoice(@Param('customer') customer: string, @Param('request') request: string): Promise<void> {
    await this.invoices.add('charge', { customer, request }, { removeOnComplete: true });
  }
}

async function* rows(lock: Lock | undefined): AsyncGenerator<string> {
  const leave = enter(lock);
  try {
    for (let row = 0; row < 5; row++) {
      yield `${row}\n`;
      await sleep(2);
    }
  } finally {
    leave();
  }
}

/** As sample/07-bullmq. A crashed worker is noticed soon. */
@Processor('invoices', { concurrency: 4, lockDuration: 6_000, stalledInterval: 2_000, maxStalledCount: 10 })
class Invoices extends WorkerHost {
  constructor(
    private readonly locks: LockService,
    private readonly database: Database,
  ) {
    super();
  }

  override async process(job: Job<{ customer: string; request: string }>, token?: string): Promise<void> {
    try {
      await this.charge(job.data);
    } catch (error) {
      const hasNotBegun = [LockNotAcquiredError, QuorumUnavailableError, LockServiceStoppedError];
      if (!hasNotBegun.some((kind) => error instanceof kind)) throw error;
      await job.moveToDelayed(Date.now() + 100, token);
      throw new DelayedError();
    }
  }

  @OnWorkerEvent('error')
  onError(): void {
    // The worker connects again.
  }

  @WithLock(({ customer }: { customer: string }) => `customer:${customer}`, { wait: 0 })
  private async charge({ customer, request }: { customer: string; request: string }): Promise<void> {
    const leave = enter(this.locks.current(`customer:${customer}`));
    await this.database.pool.query('INSERT INTO invoices VALUES ($1) ON CONFLICT DO NOTHING', [request]);
    leave();
  }
}

const EVERY_SECOND = { ttl: task.ttl, overlap: 'queue' } as const;

@Injectable()
class Jobs {
  constructor(private readonly locks: LockService) {}

  @LockedCron('* * * * * *', { name: 'mail', ...EVERY_SECOND })
  mail(run: JobRun): Promise<void> {
    return this.tick('mail', run);
  }

  @LockedCron('* * * * * *', { name: 'sync', ...EVERY_SECOND })
  sync(run: JobRun): Promise<void> {
    return this.tick('sync', run);
  }

  private async tick(job: string, run: JobRun): Promise<void> {
    const leave = enter(this.locks.current(`job:${job}`));
    await runJob(job, 150, run);
    leave();
  }
}

@Module({
  imports: [
    BullModule.forRoot({ connection: { url: task.masters[0]! } }),
    BullModule.registerQueue({ name: 'invoices' }),
    ScheduleModule.forRoot(),
    RedlockModule.forRoot({ masters: task.masters, keyPrefix: 'soak', instance: task.instance, enabled: task.locks }),
    RedlockScheduleModule,
    RedlockLeaderModule,
  ],
  controllers: [Shop],
  providers: [Database, Accounts, Stock, Invoices, Jobs, Relay, { provide: APP_FILTER, useClass: LockExceptionFilter }],
})
class AppModule {}

/** A socket that has not closed yet keeps the process from ending: that is seen. */
function leftovers(): string[] {
  const timers = process.getActiveResourcesInfo().filter((kind) => /Timeout|Immediate/.test(kind));
  const listeners = process.eventNames().flatMap((name) => {
    return Array.from({ length: process.listenerCount(name) }, () => `listener of ${String(name)}`);
  });
  return [...timers, ...listeners];
}

function without(all: readonly string[], some: readonly string[]): string[] {
  const rest = [...all];
  for (const each of some) if (rest.includes(each)) rest.splice(rest.indexOf(each), 1);
  return rest;
}

const report = (error: unknown): void => {
  note({ kind: 'unhandled', at: now(), message: error instanceof Error ? String(error.stack) : String(error) });
};
// Nest declares the options as a class.
const options = { bufferLogs: true } as never;
// Fastify logs by pino.
const adapter = new FastifyAdapter({ logger: { level: 'info' } });
const app = await NestFactory.create<NestFastifyApplication>(AppModule, adapter, options);
const pino = adapter.getInstance().log;
app.useLogger({
  log: (message) => pino.info(message),
  warn: (message) => pino.warn(message),
  error: (message) => pino.error(message),
});
for (const event of ['unhandledRejection', 'uncaughtException', 'warning']) process.on(event, report);

const heap = setInterval(() => {
  globalThis.gc?.();
  // What is compiled grows for many minutes, and is no leak.
  const { code_and_metadata_size: code, bytecode_and_metadata_size: bytecode } = getHeapCodeStatistics();
  note({ kind: 'heap', at: now(), bytes: process.memoryUsage().heapUsed - code - bytecode });
}, 2_000);

// Not `enableShutdownHooks()`, which ends the process with the signal, and would hide what keeps it alive.
process.once('SIGTERM', () => {
  clearInterval(heap);
  void app.close().then(() => {
    process.removeAllListeners('disconnect');
    for (const event of ['unhandledRejection', 'uncaughtException', 'warning']) process.removeListener(event, report);
    note({ kind: 'closed', at: now(), left: without(leftovers(), before) });
  }, report);
});
await app.listen(0, '127.0.0.1');
process.send?.({ ready: true, port: Number(new URL(await app.getUrl()).port) });
