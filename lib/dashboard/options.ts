import type { CanActivate, FactoryProvider, ModuleMetadata, Type } from '@nestjs/common';
import { RedlockConfigError } from '../core/errors.js';
import { checkOptionNames } from '../core/settings/option-names.js';
import { resolveHosts } from './hosts.js';

/** A guard of Nest: its class, which is created with its dependencies, or an instance. */
export type DashboardGuard = Type<CanActivate> | CanActivate;

/** Where the dashboard is, and who may see it. Nest needs these before any factory runs. */
export interface RedlockDashboardPlacement {
  /**
   * Path of the page, without the global prefix of the application, such as `'admin/locks'`.
   * @default 'redlock'
   */
  path?: string;
  /**
   * Guards of the page, its data and its actions, in this order, after the global guards of the application. `'none'`
   * leaves the protection to these global guards or to a proxy: without them, every client that reaches the application
   * sees the names of locks and the addresses of masters. The page is then served under IP addresses, `localhost` and
   * {@link RedlockDashboardSettings.hosts} only.
   */
  guards: readonly DashboardGuard[] | 'none';
  /**
   * Modules that export what the guards inject.
   * @default []
   */
  imports?: ModuleMetadata['imports'];
}

/** What the dashboard does. */
export interface RedlockDashboardSettings {
  /**
   * Whether users of the dashboard may release locks by force. Otherwise it changes nothing but a key of its own.
   * @default false
   */
  actions?: boolean;
  /**
   * Names the user of a request, for the audit line of an action. An error or a rejection refuses the action: an
   * exception of Nest answers the request, any other error is logged and answers it with 403.
   * @default the address of the client
   */
  actor?(request: object): string | Promise<string>;
  /**
   * Where browsers find the page, such as `['https://admin.example.com']`, behind a proxy that changes `Host`. Browsers
   * that send `Sec-Fetch-Site`, which all current ones do on HTTPS, need no entry.
   * @default []
   */
  origins?: readonly string[];
  /**
   * Names of the hosts under which browsers and proxies ask for the page, such as `['admin.example.com']`, without
   * ports. Under every other name the answer is 403, except for IP addresses, `localhost` and names that end with
   * `.localhost`. Without guards this always holds, because otherwise a page of another site whose name is bound to the
   * address of the server (DNS rebinding) could read and act; with guards, if this option is given.
   * @default none
   */
  hosts?: readonly string[];
}

/** Options of {@link RedlockDashboardModule.forRoot}. */
export interface RedlockDashboardOptions extends RedlockDashboardPlacement, RedlockDashboardSettings {}

/** Options of {@link RedlockDashboardModule.forRootAsync}. */
export interface RedlockDashboardAsyncOptions extends RedlockDashboardPlacement {
  /**
   * What the factory receives.
   * @default []
   */
  inject?: FactoryProvider['inject'];
  /** Called once, at boot. An error that it throws aborts the boot. */
  useFactory(...dependencies: never[]): RedlockDashboardSettings | Promise<RedlockDashboardSettings>;
}

export interface DashboardSettings {
  readonly actions: boolean;
  readonly actor: ((request: object) => string | Promise<string>) | undefined;
  readonly origins: readonly string[];
  readonly hosts: readonly string[] | undefined;
}

export interface Placement {
  readonly path: string;
  readonly guards: readonly DashboardGuard[];
  readonly imports: NonNullable<ModuleMetadata['imports']>;
}

const DEFAULT_PATH = 'redlock';
const SETTINGS = ['actions', 'actor', 'origins', 'hosts'] as const satisfies (keyof RedlockDashboardSettings)[];
const PLACEMENT = ['path', 'guards', 'imports'] as const satisfies (keyof RedlockDashboardPlacement)[];
const FACTORY = ['inject', 'useFactory'] as const satisfies (keyof RedlockDashboardAsyncOptions)[];
// Segments without characters that routers give a meaning.
const PATH = /^[\w.~-]+(?:\/[\w.~-]+)*$/;

export function checkNames(options: unknown, kind: 'forRoot' | 'forRootAsync'): void {
  checkOptionNames('options', options, [...PLACEMENT, ...(kind === 'forRoot' ? SETTINGS : FACTORY)]);
}

export function checkFactory({ useFactory }: { readonly useFactory?: unknown }): void {
  if (typeof useFactory === 'function') return;
  throw new RedlockConfigError('useFactory', useFactory, 'must be a function that returns the settings');
}

export function resolvePlacement({ path, guards, imports }: RedlockDashboardPlacement): Placement {
  return { path: resolvePath(path), guards: resolveGuards(guards), imports: imports ?? [] };
}

export function resolveDashboardSettings(settings: RedlockDashboardSettings): DashboardSettings {
  checkOptionNames('options', settings, SETTINGS);
  const {
    actions = false,
    actor,
    origins = [],
    hosts,
  }: Record<keyof DashboardSettings, unknown> = {
    ...{ actions: undefined, actor: undefined, origins: undefined, hosts: undefined },
    ...settings,
  };
  if (typeof actions !== 'boolean') throw new RedlockConfigError('actions', actions, 'must be true or false');
  if (actor !== undefined && typeof actor !== 'function') {
    throw new RedlockConfigError('actor', actor, 'must be a function that names the user of a request');
  }
  return {
    actions,
    actor: actor as DashboardSettings['actor'],
    origins: resolveOrigins(origins),
    hosts: resolveHosts(hosts),
  };
}

function resolveOrigins(origins: unknown): readonly string[] {
  if (!Array.isArray(origins)) {
    throw new RedlockConfigError(
      'origins',
      origins,
      "must be a list of origins, such as ['https://admin.example.com']",
    );
  }
  return origins.map((origin: unknown, index) => {
    const url = typeof origin === 'string' && URL.canParse(origin) ? new URL(origin) : undefined;
    // Neither a path nor a user, and nothing that could be meant as a pattern.
    if (url && /^https?:\/\/[^*]+$/.test(url.origin) && url.href === `${url.origin}/`) return url.origin;
    const requirement = "must be an absolute origin without a path, such as 'https://admin.example.com'";
    throw new RedlockConfigError(`origins[${index}]`, origin, requirement);
  });
}

function resolvePath(path: unknown = DEFAULT_PATH): string {
  const trimmed = typeof path === 'string' ? path.replace(/^\/|\/$/g, '') : '';
  if (PATH.test(trimmed)) return trimmed;
  throw new RedlockConfigError('path', path, "must be a path without parameters, such as 'admin/locks'");
}

function resolveGuards(guards: unknown): readonly DashboardGuard[] {
  if (guards === 'none') return [];
  if (!Array.isArray(guards) || guards.length === 0) {
    const requirement =
      'must be a list of at least one guard, such as [AdminGuard], because the dashboard shows the names of locks and ' +
      "the addresses of masters; write guards: 'none' if a global guard or a proxy protects it";
    throw new RedlockConfigError('guards', guards, requirement);
  }
  guards.forEach((guard: unknown, index) => {
    if (isGuard(guard)) return;
    throw new RedlockConfigError(`guards[${index}]`, guard, 'must be the class or an instance of a guard of Nest');
  });
  return guards as DashboardGuard[];
}

function isGuard(guard: unknown): boolean {
  const host: unknown = typeof guard === 'function' ? guard.prototype : guard;
  return typeof host === 'object' && host !== null && 'canActivate' in host && typeof host.canActivate === 'function';
}
