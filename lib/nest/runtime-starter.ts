import type { LoggerService } from '@nestjs/common';
import type { LockService } from './lock.service.js';
import type { RedlockModuleOptions } from './redlock-module-options.interface.js';
import { createRedlockRuntime, type RedlockRuntime } from './redlock.runtime.js';

// Nest prints it where an application imports the class in place of the result of `forRoot`.
export const RUNTIME_STARTER = Symbol(
  'nestjs-redlock: import RedlockModule.forRoot(...) once, in the root module, and never RedlockModule itself',
);

// Starts the runtime when Nest creates the service: a test that replaces the service opens no connection.
export class RuntimeStarter {
  private runtime: RedlockRuntime | undefined;

  constructor(
    private readonly options: RedlockModuleOptions,
    private readonly logger: LoggerService,
    private readonly name?: string,
  ) {}

  async start(): Promise<LockService> {
    this.runtime = await createRedlockRuntime(this.options, this.logger, this.name);
    return this.runtime.service;
  }

  stop(): void {
    this.runtime?.stop();
  }

  async close(): Promise<void> {
    await this.runtime?.close();
  }
}
