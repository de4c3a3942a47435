import { type DynamicModule, type FactoryProvider, Module } from '@nestjs/common';
import { DiscoveryModule, DiscoveryService, ModuleRef } from '@nestjs/core';
import { Dashboard } from './dashboard.js';
import { dashboardController } from './dashboard.controller.js';
import { schema } from '../internal.js';
import {
  type DashboardSettings,
  PLACEMENT,
  type Placement,
  type RedlockDashboardAsyncOptions,
  type RedlockDashboardOptions,
  SETTINGS,
} from './options.js';

const DASHBOARD_SETTINGS = Symbol('nestjs-redlock:dashboard-settings');

const FACTORY = {
  inject: schema.optional(
    schema.only<NonNullable<FactoryProvider['inject']>>('a list of what the factory receives', Array.isArray),
    [],
  ),
  useFactory: schema.method('a function that returns the settings'),
};

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
    const { path, guards, imports, ...settings } = schema.readOptions('options', options, {
      ...PLACEMENT,
      ...SETTINGS,
    });
    return define({ path, guards, imports }, { provide: DASHBOARD_SETTINGS, useFactory: () => settings });
  }

  /**
   * Like {@link forRoot}, with `actions`, `actor`, `origins` and `hosts` from a factory.
   *
   * @throws {RedlockConfigError} for an invalid option, and without `guards`
   */
  static forRootAsync(options: RedlockDashboardAsyncOptions): DynamicModule {
    const { inject, ...placement } = schema.readOptions('options', options, { ...PLACEMENT, ...FACTORY });
    return define(placement, {
      provide: DASHBOARD_SETTINGS,
      useFactory: async (...given: unknown[]) =>
        schema.readOptions('options', await options.useFactory(...(given as never[])), SETTINGS),
      inject,
    });
  }
}

function define(placement: Placement, provider: FactoryProvider): DynamicModule {
  return {
    module: RedlockDashboardModule,
    imports: [DiscoveryModule, ...placement.imports],
    controllers: [dashboardController(placement)],
    providers: [
      provider,
      {
        provide: Dashboard,
        useFactory: (settings: DashboardSettings, discovery: DiscoveryService, modules: ModuleRef) =>
          new Dashboard({ settings, placement, discovery, modules }),
        inject: [DASHBOARD_SETTINGS, DiscoveryService, ModuleRef],
      },
    ],
  };
}
