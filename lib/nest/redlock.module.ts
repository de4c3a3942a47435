import {
  type BeforeApplicationShutdown,
  ConfigurableModuleBuilder,
  type DynamicModule,
  Inject,
  Logger,
  Module,
  type OnApplicationShutdown,
  type OnModuleInit,
  type Provider,
} from '@nestjs/common';
import type {
  MasterSource,
  ProvidedOptions,
  RedlockModuleExtras,
  RedlockModuleOptions,
} from './redlock-module-options.interface.js';
import { DiscoveryModule, DiscoveryService, ModuleRef, ModulesContainer } from '@nestjs/core';
import { RedlockConfigError } from '../settings/config.error.js';
import { checkOptionNames, parseOptions } from '../settings/table.js';
import { nameInterceptors } from './interceptor-check.js';
import { LockExplorer } from './lock.explorer.js';
import { getLockServiceToken, getReplacementToken, isLockService, SERVICE_NAME } from './lock-service.token.js';
import { LockService } from './lock.service.js';
import { adviceFor, EXTRAS, MODULE_OPTIONS } from './module-settings.js';
import { closeOnFailedBoot, RUNTIME_STARTER, RuntimeStarter } from './runtime-starter.js';

const extras: Required<Pick<RedlockModuleExtras, 'isGlobal'>> & { name: string | undefined } = parseOptions(EXTRAS, {});

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN, OPTIONS_TYPE, ASYNC_OPTIONS_TYPE } =
  new ConfigurableModuleBuilder<ProvidedOptions>({ moduleName: 'Redlock' })
    .setClassMethodName('forRoot')
    .setFactoryMethodName('createRedlockOptions')
    .setExtras(extras, (definition, { isGlobal }) => ({ ...definition, global: isGlobal }))
    .build();

// A service for each request would have connections of its own, and the hooks of its module would never run.
@Module({ imports: [DiscoveryModule] })
class ScopeCheckModule implements OnModuleInit {
  constructor(@Inject(DiscoveryService) private readonly discovery: DiscoveryService) {}

  onModuleInit(): void {
    const starters = this.discovery.getProviders().filter(({ token }) => token === RUNTIME_STARTER);
    if (starters.every((wrapper) => wrapper.isDependencyTreeStatic())) return;
    const requirement =
      'must give the same options to all requests: remove the scope of the factory or class, and of what is injected into it';
    throw new RedlockConfigError('forRootAsync', undefined, requirement, `forRootAsync ${requirement}`);
  }
}

let watching: Promise<DynamicModule> | undefined;

/** Registers a {@link LockService} over a set of Redis masters. */
@Module({ imports: [DiscoveryModule] })
export class RedlockModule
  extends ConfigurableModuleClass
  implements OnModuleInit, BeforeApplicationShutdown, OnApplicationShutdown
{
  /** @internal */
  constructor(
    @Inject(RUNTIME_STARTER) private readonly runtime: RuntimeStarter,
    @Inject(LockExplorer) private readonly explorer: LockExplorer,
  ) {
    super();
  }

  /**
   * Registers a lock service.
   *
   * @param options the masters, or all options; see {@link RedlockModuleOptions}. Invalid options abort the boot with a
   * `RedlockConfigError` that names the option, its value and the requirement.
   */
  static override forRoot(
    options: readonly MasterSource[] | (RedlockModuleOptions & Partial<typeof extras>),
  ): DynamicModule {
    const given = isList(options) ? { masters: options } : options;
    // Checked here and not only at boot, because Nest copies the options, and the copy may differ.
    checkIsObject(given);
    checkOptionNames('options', given, { ...MODULE_OPTIONS, ...EXTRAS });
    return withLockService(super.forRoot(given), given);
  }

  /** Like {@link forRoot}, with options from `useFactory`, `useClass` or `useExisting`. */
  static override forRootAsync(options: typeof ASYNC_OPTIONS_TYPE): DynamicModule {
    checkIsObject(options);
    if (!options.useFactory && !options.useClass && !options.useExisting) {
      const requirement = 'needs useFactory, useClass or useExisting: the options themselves go to forRoot';
      throw new RedlockConfigError('forRootAsync', options, requirement);
    }
    return withLockService(super.forRootAsync(options), options);
  }

  /** Checks the options of decorators, and hands the lock service to objects that Nest did not build from a class. */
  onModuleInit(): void {
    this.explorer.explore();
  }

  /** Refuses new locks from here on; requests in progress continue. */
  beforeApplicationShutdown(): void {
    this.runtime.stop();
  }

  /** Called after the handlers have ended: takes away the remaining locks and closes the connections. */
  async onApplicationShutdown(): Promise<void> {
    await this.runtime.close();
  }
}

function checkIsObject(options: unknown): asserts options is object {
  const advice = adviceFor(options);
  if (typeof options === 'object' && options !== null && advice === '') return;
  throw new RedlockConfigError('options', options, `must be a list of masters, or an object with \`masters\`${advice}`);
}

function isList(options: unknown): options is readonly MasterSource[] {
  return Array.isArray(options);
}

function withLockService(definition: DynamicModule, extras: Partial<typeof ASYNC_OPTIONS_TYPE>): DynamicModule {
  const { name } = parseOptions(EXTRAS, extras);
  const token = getLockServiceToken(name);
  // Only one service can be provided under the class itself. All other tokens lead to the provided service, so that a
  // test that replaces it also replaces the service of decorators and interceptors.
  const service = name === undefined ? LockService : token;
  const providers: Provider[] = [
    {
      provide: RUNTIME_STARTER,
      useFactory: (given: ProvidedOptions, modules: ModulesContainer) =>
        new RuntimeStarter(isList(given) ? { masters: given } : given, loggerOf(name), modules, name),
      inject: [MODULE_OPTIONS_TOKEN, ModulesContainer],
    },
    {
      provide: service,
      // A mocker of a test provides a mock for each optional dependency, too.
      useFactory: (runtime: RuntimeStarter, discovery: DiscoveryService, replacement: unknown) => {
        nameInterceptors(discovery);
        return isLockService(replacement) ? replacement : runtime.start();
      },
      inject: [RUNTIME_STARTER, DiscoveryService, { token: getReplacementToken(name), optional: true }],
    },
    { provide: SERVICE_NAME, useValue: name ?? null },
    {
      provide: LockExplorer,
      useFactory: (discovery: DiscoveryService, locks: LockService, modules: ModuleRef) =>
        new LockExplorer(discovery, locks, name ?? null, modules),
      inject: [DiscoveryService, service, ModuleRef],
    },
  ];
  if (name === undefined) providers.push({ provide: token, useExisting: LockService });
  // Nest awaits it before it creates anything.
  watching ??= closeOnFailedBoot().then(() => ({ module: ScopeCheckModule }));
  return {
    ...definition,
    imports: [...(definition.imports ?? []), watching],
    providers: [...(definition.providers ?? []), ...providers],
    exports: [...(definition.exports ?? []), token, ...(name === undefined ? [LockService] : [])],
  };
}

// The lines of several services are distinguished by their context.
function loggerOf(name: string | undefined): Logger {
  return new Logger(name === undefined ? LockService.name : `${LockService.name} ${name}`);
}
