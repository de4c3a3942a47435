import { type DynamicModule, type FactoryProvider, Module } from '@nestjs/common';
import { DiscoveryModule, DiscoveryService, ModuleRef } from '@nestjs/core';
import { Dashboard } from './dashboard.js';
import { dashboardController } from './dashboard.controller.js';
import {
  checkFactory,
  checkNames,
  type Placement,
  type RedlockDashboardAsyncOptions,
  type RedlockDashboardOptions,
  resolvePlacement,
  resolveDashboardSettings,
} from './options.js';

const SETTINGS = Symbol('nestjs-redlock:dashboard-settings');

/**
 * Serves a page that shows the masters, the locks of this instance and recent events, and that inspects any lock.
 *
 * ```ts
 * imports: [RedlockModule.forRoot([...]), RedlockDashboardModule.forRoot({ path: 'admin/locks', guards: [AdminGuard] })]
 * ```
 */
@Module({})
export class RedlockDashboardModule {
  /**
   * Registers a dashboard of all lock services of the application.
   *
   * @throws {RedlockConfigError} for an invalid option, and without `guards`
   */
  static forRoot(options: RedlockDashboardOptions): DynamicModule {
    checkNames(options, 'forRoot');
    const { path: _path, guards: _guards, imports: _imports, ...rest } = options;
    const settings = resolveDashboardSettings(rest);
    return define(resolvePlacement(options), { provide: SETTINGS, useFactory: () => settings });
  }

  /**
   * Like {@link forRoot}, with `actions`, `actor`, `origins` and `hosts` from a factory.
   *
   * @throws {RedlockConfigError} for an invalid option, and without `guards`
   */
  static forRootAsync(options: RedlockDashboardAsyncOptions): DynamicModule {
    checkNames(options, 'forRootAsync');
    checkFactory(options);
    const { inject = [] } = options;
    return define(resolvePlacement(options), {
      provide: SETTINGS,
      useFactory: async (...given: unknown[]) =>
        resolveDashboardSettings(await options.useFactory(...(given as never[]))),
      inject,
    });
  }
}

function define(placement: Placement, settings: FactoryProvider): DynamicModule {
  return {
    module: RedlockDashboardModule,
    imports: [DiscoveryModule, ...placement.imports],
    controllers: [dashboardController(placement)],
    providers: [
      settings,
      {
        provide: Dashboard,
        useFactory: (
          resolved: ReturnType<typeof resolveDashboardSettings>,
          discovery: DiscoveryService,
          modules: ModuleRef,
        ) => new Dashboard({ settings: resolved, placement, discovery, modules }),
        inject: [SETTINGS, DiscoveryService, ModuleRef],
      },
    ],
  };
}
