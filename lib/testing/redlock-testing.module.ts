import {
  type BeforeApplicationShutdown,
  type DynamicModule,
  Inject,
  Logger,
  Module,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { checkOptionNames } from '../core/settings/option-names.js';
import { type TableOf, unchecked } from '../core/settings/table.js';
import { getReplacementToken } from '../nest/lock-service.token.js';
import { RedlockModule } from '../nest/redlock.module.js';
import type { RedlockRuntime } from '../nest/redlock.runtime.js';
import { createMemoryRuntime, MEMORY_OPTIONS, type MemoryLockServiceOptions } from './memory-lock-service.js';

/** Options of {@link RedlockTestingModule}: those of `memoryLockService()`, and the name of the service. */
export interface RedlockTestingModuleOptions extends MemoryLockServiceOptions {
  /**
   * Name of the lock service, as in `RedlockModule.forRoot({ name })`. Import the module once for each name.
   * @default the service without a name
   */
  name?: string;
}

const OPTIONS = { ...MEMORY_OPTIONS, name: unchecked } satisfies TableOf<RedlockTestingModuleOptions>;

const MEMORY_RUNTIME = Symbol(
  'nestjs-redlock: import RedlockTestingModule.forRoot(), and not RedlockTestingModule itself',
);

/**
 * Real locks on masters in memory, for the module of a test: injected services, `@WithLock` and `LockInterceptor` work
 * without Redis. Beside a `RedlockModule` of the application it takes the place of that module's lock service, which
 * then opens no connection.
 */
@Module({})
export class RedlockTestingModule implements OnModuleInit, BeforeApplicationShutdown, OnApplicationShutdown {
  /** @internal */
  constructor(@Inject(MEMORY_RUNTIME) private readonly runtime: RedlockRuntime) {}

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
    checkOptionNames('RedlockTestingModule.forRoot', options, OPTIONS);
    const { name, ...memory } = options;
    const replacement = getReplacementToken(name);
    return {
      module: RedlockTestingModule,
      // Modules of the application must find the replacement.
      global: true,
      imports: [RedlockModule.forRoot({ masters: 'memory', ...(name !== undefined && { name }) })],
      providers: [
        { provide: MEMORY_RUNTIME, useFactory: () => createMemoryRuntime(memory) },
        { provide: replacement, useFactory: ({ service }: RedlockRuntime) => service, inject: [MEMORY_RUNTIME] },
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
