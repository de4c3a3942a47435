import type { CanActivate, FactoryProvider, ModuleMetadata, Type } from '@nestjs/common';
import { schema } from '../internal.js';
import { hostName } from './hosts.js';

/** A guard of Nest: its class, which is created with its dependencies, or an instance. */
export type DashboardGuard = Type<CanActivate> | CanActivate;

/** Where the dashboard is, and who may see it. Nest needs these before any factory runs. */
export interface RedlockDashboardPlacement {
  /**
   * Path of the page, without the global prefix of the application. An example is `'admin/locks'`.
   * @default 'redlock'
   */
  path?: string;
  /**
   * Guards of Nest that protect the page, its data and its actions, or `'none'`. They run in this order, after the global
   * guards of the application. `'none'` leaves the protection to these global guards or to a proxy: without them, every
   * client that reaches the application sees the names of locks and the addresses of masters. The page is then served
   * under IP addresses, `localhost` and {@link RedlockDashboardSettings.hosts} only.
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
   * Whether users may release locks by force. Otherwise it changes nothing but a key of its own.
   * @default false
   */
  actions?: boolean;
  /**
   * Function that names the user of a request, for the audit line of an action. An error or a rejection refuses the
   * action: an exception of Nest answers the request, any other error is logged and answers it with 403.
   * @default the address of the client
   */
  actor?(request: object): string | Promise<string>;
  /**
   * Origins of the page behind a proxy that changes `Host`, such as `['https://admin.example.com']`. Browsers
   * that send `Sec-Fetch-Site`, which all current ones do on HTTPS, need no entry.
   * @default []
   */
  origins?: readonly string[];
  /**
   * Names of hosts under which the page is served, without ports, such as `['admin.example.com']`. Under every other
   * name the answer is 403, except for IP addresses, `localhost` and names that end with `.localhost`. Without guards
   * this always holds, because otherwise a page of another site whose name is bound to the address of the server (DNS
   * rebinding) could read and act; with guards, if this option is given.
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

// Segments without characters that routers give a meaning.
const PATH = /^[\w.~-]+(?:\/[\w.~-]+)*$/;

const guards = schema.list(
  'a list of at least one guard, such as [AdminGuard], because the dashboard shows the names of locks and the addresses ' +
    "of masters; write guards: 'none' if a global guard or a proxy protects it",
  schema.only<DashboardGuard>('the class or an instance of a guard of Nest', isGuard),
  1,
);

export const PLACEMENT = {
  path: schema.optional(schema.from("a path without parameters, such as 'admin/locks'", pathOf), 'redlock'),
  guards: schema.parser(guards.kind, (option, value) => (value === 'none' ? [] : guards(option, value))),
  imports: schema.optional(schema.only<NonNullable<ModuleMetadata['imports']>>('a list of modules', Array.isArray), []),
} satisfies schema.TableOf<RedlockDashboardPlacement>;

export const SETTINGS = {
  actions: schema.optional(schema.flag, false),
  actor: schema.optional(
    schema.method<NonNullable<RedlockDashboardSettings['actor']>>('a function that names the user of a request'),
  ),
  origins: schema.optional(
    schema.list(
      "a list of origins, such as ['https://admin.example.com']",
      schema.from("an absolute origin without a path, such as 'https://admin.example.com'", originOf),
    ),
    [],
  ),
  hosts: schema.optional(schema.list("a list of at least one host name, such as ['admin.example.com']", hostName, 1)),
} satisfies schema.TableOf<RedlockDashboardSettings>;

export type DashboardSettings = Readonly<schema.ValuesOf<typeof SETTINGS>>;
export type Placement = Readonly<schema.ValuesOf<typeof PLACEMENT>>;

function originOf(origin: unknown): string | undefined {
  const url = typeof origin === 'string' && URL.canParse(origin) ? new URL(origin) : undefined;
  // Neither a path nor a user, and nothing that could be meant as a pattern.
  return url && /^https?:\/\/[^*]+$/.test(url.origin) && url.href === `${url.origin}/` ? url.origin : undefined;
}

function pathOf(path: unknown): string | undefined {
  const trimmed = typeof path === 'string' ? path.replace(/^\/|\/$/g, '') : '';
  return PATH.test(trimmed) ? trimmed : undefined;
}

function isGuard(guard: unknown): boolean {
  const host: unknown = typeof guard === 'function' ? guard.prototype : guard;
  return typeof host === 'object' && host !== null && 'canActivate' in host && typeof host.canActivate === 'function';
}
