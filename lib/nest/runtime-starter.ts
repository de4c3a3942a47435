import type { LoggerService } from '@nestjs/common';
import type { LockService } from './lock.service.js';
import type { RedlockModuleOptions } from './redlock-module-options.interface.js';
import { createRedlockRuntime, type RedlockRuntime } from './redlock.runtime.js';

/** Injection token. Nest prints it where an application imports the class in place of the result of `forRoot`. */
export const RUNTIME_STARTER = Symbol(
  'nestjs-redlock: import RedlockModule.forRoot(...) once, in the root module, and never RedlockModule itself',
);

/**
 * Starts the runtime of a lock service when Nest creates the service. A test that replaces the service therefore opens
 * no connection.
 */
export class RuntimeStarter {
  private runtime: RedlockRuntime | undefined;

  constructor(
    private readonly options: RedlockModuleOptions,
    private readonly logger: LoggerService,
    private readonly name?: string,
  ) {}

  /** Checks all options, and connects to the masters. */
  async start(): Promise<LockService> {
    this.runtime = await createRedlockRuntime(this.options, this.logger, this.name);
    return this.runtime.service;
  }

  /** Refuses new locks and ends waiting. */
  stop(): void {
    this.runtime?.stop();
  }

  /** Waits for the held locks, and closes the connections. */
  async close(): Promise<void> {
    await this.runtime?.close();
  }
}
