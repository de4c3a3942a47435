import {
  type BeforeApplicationShutdown,
  type DynamicModule,
  Inject,
  Logger,
  Module,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { type Clock, LockService, RedlockConfigError, RedlockModule, type RedlockOptions } from '../index.js';
import {
  assignLockService,
  createMemoryRuntime,
  getReplacementToken,
  MEMORY_OPTIONS,
  MemoryMaster,
  schema,
} from '../internal.js';

/** Options of {@link memoryLockService}: the module's options for locks, the masters and the clock. */
export interface MemoryLockServiceOptions extends RedlockOptions {
  /**
   * The masters that store the locks. Services with the same masters exclude each other.
   * @default one master of its own
   */
  masters?: readonly MemoryMaster[];
  /**
   * Source of time; pass the same one to the masters.
   * @default the clocks of this process
   */
  clock?: Clock;
}

/**
 * Creates a lock service without a module and without Redis, with real locks: for objects that a test creates itself,
 * as another process beside an application, and as a replacement for the application's own service:
 *
 * ```ts
 * Test.createTestingModule({ imports: [AppModule] }).overrideProvider(LockService).useValue(memoryLockService());
 * ```
 *
 * Replace a service that was registered with a name by `overrideProvider(getLockServiceToken(name))`.
 *
 * @param options {@link MemoryLockServiceOptions}; all of them are optional
 *
 * @throws {RedlockConfigError} for an invalid option
 */
export function memoryLockService(options: MemoryLockServiceOptions = {}): LockService {
  schema.checkOptionNames('memoryLockService', options, MEMORY_OPTIONS);
  return createMemoryRuntime(options).service;
}

/**
 * Gives an object that Nest did not create the lock service that its `@WithLock` methods use:
 *
 * ```ts
 * const orders = withLocks(new OrderService(carrier));
 * ```
 *
 * @param object an object whose class has `@WithLock` methods. Objects that it refers to are not changed.
 * @param locks serves all its methods, including those that name another service; default: a new `memoryLockService()`
 * @returns the same object
 * @throws {RedlockConfigError} if the object has no `@WithLock` method, for an invalid option of `@WithLock`, and for a
 * mock instead of `locks`
 */
export function withLocks<T extends object>(object: T, locks: LockService = memoryLockService()): T {
  if (typeof object !== 'object' || (object as T | null) === null) {
    throw new RedlockConfigError('withLocks', object, 'needs an object, as in withLocks(new OrderService())');
  }
  if (assignLockService(object, locks).length === 0) {
    throw new RedlockConfigError('withLocks', object, 'needs an object whose class has a @WithLock method');
  }
  return object;
}

/** Options of {@link RedlockTestingModule}: those of `memoryLockService()`, and the name of the service. */
export interface RedlockTestingModuleOptions extends MemoryLockServiceOptions {
  /**
   * Name of the lock service, as in `RedlockModule.forRoot({ name })`. Import the module once for each name.
   * @default the service without a name
   */
  name?: string;
}

const OPTIONS = {
  ...MEMORY_OPTIONS,
  name: schema.optional(schema.text),
} satisfies schema.TableOf<RedlockTestingModuleOptions>;

type MemoryRuntime = ReturnType<typeof createMemoryRuntime>;

const MEMORY_RUNTIME = Symbol(
  'nestjs-redlock: import RedlockTestingModule.forRoot(), and not RedlockTestingModule itself',
);

/**
 * Real locks on masters in memory, for the module of a test: injected services, `@WithLock` and `LockInterceptor` work
 * without Redis. Beside a `RedlockModule` of the application it replaces that module's lock service, which
 * then opens no connection.
 */
@Module({})
export class RedlockTestingModule implements OnModuleInit, BeforeApplicationShutdown, OnApplicationShutdown {
  /** @internal */
  constructor(@Inject(MEMORY_RUNTIME) private readonly runtime: MemoryRuntime) {}

  /**
   * Provides a lock service in memory, a new one for each application that boots.
   *
   * ```ts
   * Test.createTestingModule({ imports: [RedlockTestingModule.forRoot()], providers: [OrderService] });
   * Test.createTestingModule({ imports: [AppModule, RedlockTestingModule.forRoot()] });
   * ```
   *
   * @param options {@link RedlockTestingModuleOptions}; default: one master and the clocks of this process
   * @throws {RedlockConfigError} for an unknown option or an invalid name; other invalid options abort the boot with it
   */
  static forRoot(options: RedlockTestingModuleOptions = {}): DynamicModule {
    schema.checkOptionNames('RedlockTestingModule.forRoot', options, OPTIONS);
    const { name, ...memory } = options;
    const replacement = getReplacementToken(name);
    return {
      module: RedlockTestingModule,
      // Modules of the application must find the replacement.
      global: true,
      imports: [RedlockModule.forRoot({ masters: 'memory', ...(name !== undefined && { name }) })],
      providers: [
        { provide: MEMORY_RUNTIME, useFactory: () => createMemoryRuntime(memory) },
        { provide: replacement, useFactory: ({ service }: MemoryRuntime) => service, inject: [MEMORY_RUNTIME] },
      ],
      exports: [replacement],
    };
  }

  /** Warns, because an application that imports this module by mistake would run. The logger of Nest's tests is silent. */
  onModuleInit(): void {
    const logger = new Logger(RedlockTestingModule.name);
    logger.warn('locks are in the memory of this process and exclude no other process: for tests only');
  }

  /** Refuses new locks from here on. */
  beforeApplicationShutdown(): void {
    this.runtime.stop();
  }

  /** Takes away the locks that are still held, at once: a test may leave some on purpose. */
  onApplicationShutdown(): void {
    // Not awaited: a master that the test has paused answers no release, and a clock that it moves may stand still.
    void this.runtime.close();
  }
}
