import { type DiscoveryService, HttpAdapterHost, type ModuleRef, ModulesContainer } from '@nestjs/core';
import type { Fate } from './handlers.js';

export type Wrapper = ReturnType<DiscoveryService['getProviders']>[number];

type Discovery = Pick<DiscoveryService, 'getProviders' | 'getControllers'>;

// What Nest has made for an application, or makes for each request.
export interface ApplicationObjects {
  readonly providers: readonly Wrapper[];
  readonly controllers: readonly Wrapper[];
  // Guards, interceptors, pipes and filters that are given by class, and middleware.
  readonly enhancers: readonly Wrapper[];
}

export function objectsOf(discovery: Discovery, modules: ModuleRef): ApplicationObjects {
  const enhancers = [...modules.get(ModulesContainer, { strict: false }).values()].flatMap((module) => [
    ...module.injectables.values(),
    ...module.middlewares.values(),
  ]);
  return { providers: discovery.getProviders(), controllers: discovery.getControllers(), enhancers };
}

// `undefined` for what is not an object, or has no class.
export function prototypeOf(wrapper: Wrapper): object | undefined {
  const { metatype, instance, isFactory } = wrapper as { metatype: unknown; instance: unknown; isFactory?: boolean };
  if (typeof metatype === 'function' && !isFactory) return metatype.prototype as object | undefined;
  if (typeof instance !== 'object' || instance === null) return undefined;
  return (Object.getPrototypeOf(instance) as object | null) ?? undefined;
}

// Whether interceptors run for the fields of GraphQL, which each of its modules says for itself.
export function fateOfFields(providers: readonly Wrapper[]): Fate {
  const enhanced = providers
    .filter(({ token }) => token === 'GqlModuleOptions')
    .map(({ instance }) => {
      const { fieldResolverEnhancers } = Object(instance) as { fieldResolverEnhancers?: readonly unknown[] };
      return fieldResolverEnhancers?.includes('interceptors') === true;
    });
  if (!enhanced.includes(true)) return 'refused';
  return enhanced.includes(false) ? 'warned' : 'locked';
}

// The interceptors of all handlers, as instances or classes.
export function globalInterceptorsOf(objects: ApplicationObjects, modules: ModuleRef): readonly unknown[] {
  const provided = [...objects.providers, ...objects.enhancers]
    .filter(({ token }) => typeof token === 'string' && token.startsWith('APP_INTERCEPTOR'))
    .flatMap(({ metatype, instance }) => [metatype, instance] as readonly unknown[]);
  return [...provided, ...configOf(modules).interceptors];
}

// Those of `app.useGlobalInterceptors` and the like, which Nest shows nowhere else.
function configOf(modules: ModuleRef): { readonly interceptors: readonly unknown[] } {
  const { container } = modules as unknown as {
    container?: { applicationConfig?: { getGlobalInterceptors?: () => readonly unknown[] } };
  };
  return { interceptors: container?.applicationConfig?.getGlobalInterceptors?.() ?? [] };
}

export function hasHttp(modules: ModuleRef): boolean {
  const host: unknown = modules.get(HttpAdapterHost, { strict: false });
  return Boolean((host as HttpAdapterHost | undefined)?.httpAdapter);
}
