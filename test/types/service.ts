// Compile-only: `npm run typecheck` fails where something compiles that must not, or does not that must.
import { Controller, Get, Injectable, Module, UseInterceptors } from '@nestjs/common';
import { Redis } from 'ioredis';
import {
  type Duration,
  InjectLockService,
  type Lock,
  LockInterceptor,
  type LockLostCause,
  LockLostError,
  LockService,
  RedlockModule,
  type RedlockModuleOptions,
  type RedlockOptionsFactory,
} from 'nestjs-redlock';
import { ManualClock, memoryLockService, memoryMasters, RedlockTestingModule, withLocks } from 'nestjs-redlock/testing';

@Injectable()
export class Orders {
  constructor(
    private readonly locks: LockService,
    @InjectLockService('billing') private readonly billing: LockService,
  ) {}

  @InjectLockService() readonly injected!: LockService;

  async uses(ttl: Duration, seconds: number): Promise<string> {
    await using held = await this.locks.acquire('a', '10s');
    await using maybe = await this.billing.tryAcquire(['a', 'b'] as const, 250);
    await using later = await this.billing.tryAcquire('a', { ttl: '5s', wait: '1s' });
    if (maybe !== null) maybe.assertHeld();
    const lock: Lock = held;
    const signal: AbortSignal = lock.signal;
    await lock.extend();
    await lock.extend('5s');
    const current: Lock | undefined = this.locks.current('a');
    const { state, remaining } = await this.locks.inspect('a');
    const free: boolean = state === 'free' || remaining === undefined || current?.isHeld === true;
    const count: number = await this.locks.withLock('a', ttl, async () => Promise.resolve(1));
    const text: string = await this.locks.withLock('a', { wait: '2s', signal }, () => 'at once');
    const cause = (error: unknown): LockLostCause | undefined =>
      error instanceof LockLostError ? error.cause : undefined;
    return `${text}${count}${free}${cause(undefined)}${await this.locks.withLock('a', `${seconds}s`, () => 'x')}`;
  }

  async misuses(): Promise<void> {
    // @ts-expect-error no resource
    await this.locks.acquire();
    // @ts-expect-error a number is no resource
    await this.locks.acquire(42);
    // @ts-expect-error no such unit
    await this.locks.acquire('a', '5 minutes');
    // @ts-expect-error no such option
    await this.locks.acquire('a', { ttl: '5s', retry: 1 });
    // @ts-expect-error only work can be reentrant
    await this.locks.acquire('a', { ttl: '5s', reentrant: true });
    // @ts-expect-error may be null
    (await this.locks.tryAcquire('a')).assertHeld();
    // @ts-expect-error there is no work
    await this.locks.withLock('a', '5s');
    // @ts-expect-error only decorators and interceptors have onLocked
    await this.locks.withLock('a', { ttl: '5s', onLocked: 'skip' }, () => 1);
    // @ts-expect-error the result is a number
    const text: string = await this.locks.withLock('a', '5s', () => 1);
    // @ts-expect-error one resource at a time
    await this.locks.inspect(['a', 'b']);
    const lock = await this.locks.acquire('a');
    // @ts-expect-error is a question, not a statement
    lock.isHeld = true;
    // @ts-expect-error only the library makes locks
    new LockService();
  }
}

@Injectable()
class Config implements RedlockOptionsFactory {
  createRedlockOptions(): RedlockModuleOptions {
    return { masters: 'memory' };
  }
}

@Module({ providers: [Config], exports: [Config] })
class ConfigModule {}

export const modules = [
  RedlockModule.forRoot(['redis://10.0.0.1:6379', 'rediss://10.0.0.2:6379', 'redis://10.0.0.3:6379']),
  RedlockModule.forRoot(['redis://10.0.0.1:6379'] as const),
  RedlockModule.forRoot([{ host: '10.0.0.1', port: 6379, tls: {} }, new Redis({ lazyConnect: true })]),
  RedlockModule.forRoot({ masters: 'memory', ttl: '10s', wait: 0, keyPrefix: 'app:', isGlobal: true, name: 'billing' }),
  RedlockModule.forRoot({ masters: memoryMasters(3), clock: new ManualClock(), enabled: false, lazyConnect: true }),
  RedlockModule.forRootAsync({ useFactory: () => ({ masters: 'memory' }), isGlobal: false, name: 'billing' }),
  RedlockModule.forRootAsync({
    imports: [ConfigModule],
    inject: [Config],
    useFactory: async (config: Config) => Promise.resolve(config.createRedlockOptions()),
  }),
  RedlockModule.forRootAsync({ useClass: Config }),
  RedlockModule.forRootAsync({ useExisting: Config }),
  RedlockModule.forRoot({ enabled: false }),
  RedlockModule.forRoot({ enabled: false, ttl: '10s', isGlobal: false, name: 'billing' }),
  RedlockModule.forRoot({ enabled: process.env.LOCKS !== 'off', masters: 'memory' }),
  RedlockModule.forRootAsync({ useFactory: () => ({ enabled: false }) }),
  RedlockModule.forRootAsync({
    useFactory: async () => Promise.resolve(['redis://a:6379', { host: 'b', password: () => 'x' }]),
  }),
  RedlockModule.forRootAsync({ useFactory: () => (process.env.LOCKS ? { masters: 'memory' } : { enabled: false }) }),
  RedlockModule.forRootAsync({ useFactory: async () => Promise.resolve({ enabled: false as const }) }),
  // @ts-expect-error whether masters are needed is known only at run time
  RedlockModule.forRoot({ enabled: process.env.LOCKS !== 'off' }),
  // @ts-expect-error no masters
  RedlockModule.forRoot({ enabled: true }),
  // @ts-expect-error no such option
  RedlockModule.forRoot({ enabled: false, retryCount: 3 }),
  // @ts-expect-error no options
  RedlockModule.forRoot(),
  // @ts-expect-error no masters
  RedlockModule.forRoot({}),
  // @ts-expect-error no masters
  RedlockModule.forRoot({ ttl: '10s' }),
  // @ts-expect-error masters are a list
  RedlockModule.forRoot('redis://10.0.0.1:6379'),
  // @ts-expect-error a number is no master
  RedlockModule.forRoot([6379]),
  // @ts-expect-error no such option
  RedlockModule.forRoot({ masters: 'memory', retryCount: 3 }),
  // @ts-expect-error there is no unit
  RedlockModule.forRoot({ masters: 'memory', ttl: '10' }),
  // @ts-expect-error the quorum is the majority, always
  RedlockModule.forRoot({ masters: 'memory', quorum: 1 }),
  // @ts-expect-error the factory gives no masters
  RedlockModule.forRootAsync({ useFactory: () => ({ ttl: '10s' as const }) }),
  // @ts-expect-error the class gives no options
  RedlockModule.forRootAsync({ useClass: Orders }),
];

export const testingModules = [
  RedlockTestingModule.forRoot(),
  RedlockTestingModule.forRoot({ masters: memoryMasters(3), clock: new ManualClock(), ttl: '10s', name: 'billing' }),
  // @ts-expect-error a test has no servers
  RedlockTestingModule.forRoot({ masters: ['redis://10.0.0.1:6379'] }),
  // @ts-expect-error it is always global
  RedlockTestingModule.forRoot({ isGlobal: false }),
];

export class Boxed<T> {
  constructor(readonly content: T) {}
}

export function wraps(orders: Orders): [Orders, Boxed<number>] {
  const boxed: Boxed<number> = withLocks(new Boxed(1), memoryLockService());
  // @ts-expect-error a number has no methods to lock
  withLocks(1);
  // @ts-expect-error a module is no lock service
  withLocks(orders, RedlockTestingModule.forRoot());
  return [withLocks(orders), boxed];
}

@Controller()
export class Carts {
  @Get()
  @UseInterceptors(LockInterceptor((context) => context.getHandler().name, { ttl: '5s', onLocked: { status: 202 } }))
  uses(): void {}

  @UseInterceptors(LockInterceptor(async () => Promise.resolve(['a', 'b'] as const)))
  later(): void {}

  @UseInterceptors(LockInterceptor(['a', 'b'], { ttl: 500, service: 'billing', wait: '1s', minHold: '1s' }))
  several(): void {}

  // @ts-expect-error a key is a text
  @UseInterceptors(LockInterceptor(() => 42))
  number(): void {}

  // @ts-expect-error no such option
  @UseInterceptors(LockInterceptor('a', { ttl: '5s', retryCount: 3 }))
  option(): void {}
}
