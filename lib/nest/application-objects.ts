import {
  type DiscoveryService,
  HttpAdapterHost,
  MetadataScanner,
  type ModuleRef,
  ModulesContainer,
} from '@nestjs/core';
import 'reflect-metadata';

export type Wrapper = ReturnType<DiscoveryService['getProviders']>[number];

type Discovery = Pick<DiscoveryService, 'getProviders' | 'getControllers'>;

// What Nest has made for an application, or makes for each request.
export interface ApplicationObjects {
  readonly providers: readonly Wrapper[];
  readonly controllers: readonly Wrapper[];
  // Guards, interceptors, pipes and filters that are given by class, and middleware.
  readonly enhancers: readonly Wrapper[];
  // Those that are given as objects, to decorators or to the application.
  readonly given: readonly object[];
}

export function objectsOf(discovery: Discovery, modules: ModuleRef): ApplicationObjects {
  const enhancers = [...modules.get(ModulesContainer, { strict: false }).values()].flatMap((module) => [
    ...module.injectables.values(),
    ...module.middlewares.values(),
  ]);
  const [providers, controllers] = [discovery.getProviders(), discovery.getControllers()];
  const given: unknown[] = [...[...providers, ...controllers].flatMap(decoratedWith), ...globalsOf(modules)];
  return { providers, controllers, enhancers, given: given.filter(isObject) };
}

const ENHANCERS = ['__guards__', '__interceptors__', '__pipes__', '__exceptionFilters__'];

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

// A scanner keeps all that it has seen, and a class that Nest makes for each module keeps the application.
export function methodNamesOf(prototype: object): string[] {
  return new MetadataScanner().getAllMethodNames(prototype);
}

function decoratedWith(wrapper: Wrapper): readonly unknown[] {
  const prototype = prototypeOf(wrapper);
  if (typeof prototype?.constructor !== 'function') return [];
  const methods = methodNamesOf(prototype).map((name) => Reflect.get(prototype, name) as object);
  return [prototype.constructor, ...methods].flatMap((target) =>
    ENHANCERS.flatMap((key) => (Reflect.getMetadata(key, target) as unknown[] | undefined) ?? []),
  );
}

// `undefined` for what is not an object, or has no class.
export function prototypeOf(wrapper: Wrapper): object | undefined {
  const { metatype, instance, isFactory } = wrapper as { metatype: unknown; instance: unknown; isFactory?: boolean };
  if (typeof metatype === 'function' && !isFactory) return metatype.prototype as object | undefined;
  if (typeof instance !== 'object' || instance === null) return undefined;
  return (Object.getPrototypeOf(instance) as object | null) ?? undefined;
}

// The interceptors of all handlers, as instances or classes.
export function globalInterceptorsOf(objects: ApplicationObjects, modules: ModuleRef): readonly unknown[] {
  const provided = [...objects.providers, ...objects.enhancers]
    .filter(({ token }) => typeof token === 'string' && token.startsWith('APP_INTERCEPTOR'))
    .flatMap(({ metatype, instance }) => [metatype, instance] as readonly unknown[]);
  return [...provided, ...globalsOf(modules, ['getGlobalInterceptors'])];
}

const GLOBALS = ['getGlobalGuards', 'getGlobalInterceptors', 'getGlobalPipes', 'getGlobalFilters'] as const;

// Those of `app.useGlobalInterceptors` and the like, which Nest shows nowhere else.
function globalsOf(modules: ModuleRef, getters: readonly (typeof GLOBALS)[number][] = GLOBALS): readonly object[] {
  const { container } = modules as unknown as {
    container?: { applicationConfig?: Partial<Record<(typeof GLOBALS)[number], () => readonly object[]>> };
  };
  return getters.flatMap((getter) => container?.applicationConfig?.[getter]?.() ?? []);
}

export function hasHttp(modules: ModuleRef): boolean {
  const host: unknown = modules.get(HttpAdapterHost, { strict: false });
  return Boolean((host as HttpAdapterHost | undefined)?.httpAdapter);
}
