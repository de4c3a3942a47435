import type { LoggerService } from '@nestjs/common';
import { type ModulesContainer, NestApplication, NestApplicationContext, type NestContainer } from '@nestjs/core';
import { LockServiceStoppedError } from '../redlock/errors.js';
import type { LockService } from './lock.service.js';
import type { RedlockModuleOptions } from './redlock-module-options.interface.js';
import { createRedlockRuntime, type RedlockRuntime } from './redlock.runtime.js';

// Nest prints it where an application imports the class instead of the result of `forRoot`.
export const RUNTIME_STARTER = Symbol(
  'nestjs-redlock: import RedlockModule.forRoot(...) once, in the root module, and never RedlockModule itself',
);

// The modules of applications whose boot has failed.
const failed = new WeakSet<object>();

// Starts the runtime when Nest creates the service: a test that replaces the service opens no connection.
export class RuntimeStarter {
  private runtime: RedlockRuntime | undefined;

  constructor(
    private readonly options: RedlockModuleOptions,
    private readonly logger: LoggerService,
    private readonly modules: ModulesContainer,
    private readonly name?: string,
  ) {}

  async start(): Promise<LockService> {
    // While its options were awaited.
    if (failed.has(this.modules)) throw new LockServiceStoppedError([]);
    const { runtime, connect } = createRedlockRuntime(this.options, this.logger, this.name);
    this.runtime = runtime;
    await connect();
    return runtime.service;
  }

  stop(): void {
    this.runtime?.stop();
  }

  async close(): Promise<void> {
    await this.runtime?.close();
  }
}

type Modules = ReturnType<NestContainer['getModules']>;

async function closeServices(modules: Modules): Promise<void> {
  failed.add(modules);
  const starters = [...modules.values()].flatMap(
    ({ providers }) => (providers.get(RUNTIME_STARTER)?.instance as RuntimeStarter | null | undefined) ?? [],
  );
  await Promise.allSettled(starters.map((starter) => starter.close()));
}

// Once for a process. Nest runs no hook after a boot that has failed, and open connections would keep alive a process that
// catches its error. These methods reject then: what creates all objects, of testing modules, too, and what runs the hooks.
export async function closeOnFailedBoot(): Promise<void> {
  closeOnFailure(NestApplication, 'init');
  // Of contexts and microservices.
  closeOnFailure(NestApplicationContext, 'callInitHook');
  closeOnFailure(NestApplicationContext, 'callBootstrapHook');
  // A private file, so it may be missing in a later release.
  const loader = await import('@nestjs/core/injector/instance-loader.js').catch(() => undefined);
  closeOnFailure(loader?.InstanceLoader, 'createInstancesOfDependencies');
}

function closeOnFailure(owner: { readonly prototype: object } | undefined, method: string): void {
  const original: unknown = owner && Reflect.get(owner.prototype, method);
  if (typeof original !== 'function') return;
  const value = async function (this: { readonly container: NestContainer }, ...args: unknown[]): Promise<unknown> {
    try {
      return await (Reflect.apply(original, this, args) as unknown);
    } catch (error) {
      // Modules that are loaded lazily are created apart.
      const [modules = this.container.getModules()] = args as [Modules?];
      await closeServices(modules);
      throw error;
    }
  };
  Object.defineProperty(owner?.prototype, method, { value, configurable: true, writable: true });
}
