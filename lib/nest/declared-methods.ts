import {
  Inject,
  type LoggerService,
  Module,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
  type Type,
} from '@nestjs/common';
import { type DiscoveryService, type ModuleRef, ModulesContainer } from '@nestjs/core';
import 'reflect-metadata';
import { RedlockConfigError } from '../settings/config.error.js';
import { PartObservers } from '../operate/observer.js';
import { objectsOf, type Wrapper } from './application-objects.js';
import { checkLockService, tokenFor } from './lock-service.token.js';
import { checkTakers } from './takers.js';
import type { LockService } from './lock.service.js';
import { reportTo } from './module-settings.js';
import { injectProperty, memberOf, misuse, returnsObservable } from './lockable-method.js';

// Methods that a module calls: without it, nothing would show that they never run. `key` is that of their metadata, `token`
// that of what the module provides: Nest shows its description if it cannot find that. Registered symbols
// are the same for both builds of this package.
export const CALLED_METHODS = {
  jobs: {
    key: Symbol.for('nestjs-redlock:jobs'),
    token: Symbol.for(
      'the jobs of nestjs-redlock/schedule: import RedlockScheduleModule beside RedlockModule and ScheduleModule',
    ),
    ...{ what: 'job', module: 'RedlockScheduleModule', does: 'runs' },
  },
  elections: {
    key: Symbol.for('nestjs-redlock:leaders'),
    token: Symbol.for('the elections of nestjs-redlock/leader: import RedlockLeaderModule beside RedlockModule'),
    ...{ what: 'election', module: 'RedlockLeaderModule', does: 'holds' },
  },
} as const;

type Discovery = Pick<DiscoveryService, 'getProviders' | 'getControllers'>;

// A method that this package calls, and not the application. Its options are checked at boot.
export interface MethodDeclaration {
  // The decorator, the class and the method, for messages.
  readonly where: string;
  readonly property: string | symbol;
  readonly options: { readonly service?: string } | undefined;
}

type Called = (typeof CALLED_METHODS)[keyof typeof CALLED_METHODS];

export function declaring(decorator: string, { key, token }: Called, declaration: object): MethodDecorator {
  return (target, property, descriptor) => {
    const { where } = memberOf(decorator, target, property, descriptor);
    // The compiler emits the type only if `emitDecoratorMetadata` is on; a run checks the value, too.
    if (returnsObservable(target, property)) throw misuse(where, 'an Observable');
    Reflect.defineMetadata(key, [...ownOf(key, target), { ...declaration, where, property }], target);
    injectProperty(target, token);
  };
}

// Of the classes that it extends, too. A method that is decorated again is declared by its own class only.
function declarationsOf(key: symbol, prototype: object): readonly MethodDeclaration[] {
  const base = Object.getPrototypeOf(prototype) as object | null;
  const own = ownOf(key, prototype);
  const redeclared = new Set(own.map(({ property }) => property));
  const inherited = base ? declarationsOf(key, base) : [];
  return [...inherited.filter(({ property }) => !redeclared.has(property)), ...own];
}

// With which decorator of this package a method is declared; `undefined` if the application calls it.
export function decoratorOf(prototype: object, method: string): string | undefined {
  const declared = Object.values(CALLED_METHODS).flatMap(({ key }) => declarationsOf(key, prototype));
  return declared.find(({ property }) => property === method)?.where.split(' ')[0];
}

function ownOf(key: symbol, prototype: object): readonly MethodDeclaration[] {
  return (Reflect.getOwnMetadata(key, prototype) as MethodDeclaration[] | undefined) ?? [];
}

export interface DeclaredMethod<D extends MethodDeclaration> {
  readonly declaration: D;
  readonly locks: LockService;
  // As it is at boot. An object that stands in for the provider may have none.
  readonly method: unknown;
  readonly call: (argument: unknown) => unknown;
}

interface Application {
  readonly discovery: Discovery;
  readonly modules: ModuleRef;
}

interface Made {
  readonly instance: unknown;
  // `undefined` for one that the application has made.
  readonly wrapper?: Wrapper;
}

// In the order of the providers. Of guards and the like, too, which Nest makes for itself.
export function declaredMethods<D extends MethodDeclaration>(
  called: Called,
  { discovery, modules }: Application,
): readonly DeclaredMethod<D>[] {
  const { key, module } = called;
  const { providers, controllers, enhancers, given } = objectsOf(discovery, modules);
  const seen = new Set<unknown>();
  const wrappers = [...providers, ...controllers, ...enhancers];
  const made: Made[] = [
    ...wrappers.map((wrapper) => ({ instance: wrapper.instance as unknown, wrapper })),
    ...given.map((instance) => ({ instance })),
  ];
  const methods = made.flatMap(({ instance, wrapper }) => {
    if (typeof instance !== 'object' || instance === null || seen.has(instance)) return [];
    seen.add(instance);
    const prototype = Object.getPrototypeOf(instance) as object | null;
    if (!prototype) return [];
    seen.add(prototype);
    return (declarationsOf(key, prototype) as readonly D[]).map((declaration) => {
      if (wrapper) refuseManyInstances(declaration, wrapper);
      const method = () => Reflect.get(instance, declaration.property) as (argument: unknown) => unknown;
      const call = (argument: unknown): unknown => Reflect.apply(method(), instance, [argument]);
      return { declaration, locks: lockServiceOf(declaration, modules, module), method: method(), call };
    });
  });
  refuseOthers(called, modules, seen);
  return methods;
}

// Of objects that Nest makes later, or for other code than the application, nothing would call the methods.
function refuseOthers({ key, token, does, what }: Called, modules: ModuleRef, found: ReadonlySet<unknown>): void {
  const service = provided(modules, token);
  if (typeof service !== 'object' || service === null) return;
  checkTakers(service, (prototype) => {
    const [declaration] = declarationsOf(key, prototype);
    if (!declaration || found.has(prototype)) return;
    const requirement = `must belong to an object that the application has at boot, or nothing ${does} the ${what}: list its class in \`providers\` of a module that is not loaded later`;
    throw new RedlockConfigError(declaration.where, prototype.constructor.name, requirement);
  });
}

function lockServiceOf({ where, options = {} }: MethodDeclaration, modules: ModuleRef, module: string): LockService {
  const locks = provided(modules, tokenFor(where, options));
  if (locks === undefined) {
    const { service } = options;
    const name = service === undefined ? '...' : `{ name: '${service}', ... }`;
    const requirement = `needs a lock service: import RedlockModule.forRoot(${name}) beside ${module}`;
    throw new RedlockConfigError(`${where}: service`, service, requirement);
  }
  checkLockService(where, locks);
  return locks;
}

// `undefined` if nothing provides it.
export function provided(modules: ModuleRef, token: symbol | string | Type): unknown {
  try {
    return modules.get<unknown>(token, { strict: false });
  } catch {
    return undefined;
  }
}

function refuseManyInstances({ where }: MethodDeclaration, wrapper: Wrapper): void {
  if (wrapper.isDependencyTreeStatic() && !wrapper.isTransient) return;
  const requirement = 'needs a singleton: remove the scope of the class, and of what is injected into it';
  throw new RedlockConfigError(where, wrapper.name, requirement);
}

interface NamedMethod extends Pick<DeclaredMethod<MethodDeclaration>, 'declaration' | 'locks'> {
  readonly name: string;
}

export function refuseDuplicates({ what }: Called, methods: readonly NamedMethod[]): void {
  methods.forEach(({ name, declaration, locks }, index) => {
    const other = methods.slice(0, index).find((each) => each.name === name && shareKeys(each.locks, locks));
    if (!other) return;
    const [one, another] = [other.declaration.where, declaration.where];
    const advice =
      one === another
        ? ' (is its class a provider or an enhancer of several modules, both, or extended by several?)'
        : '';
    const requirement = `must be different for each ${what} on the same masters, and ${one} has the same${advice}`;
    throw new RedlockConfigError(`${another}: name`, name, requirement);
  });
}

function shareKeys(one: LockService, other: LockService): boolean {
  if (one === other) return true;
  const [a, b] = [one.environment, other.environment];
  return a.settings.keyPrefix === b.settings.keyPrefix && a.servers.some((server) => b.servers.includes(server));
}

// What calls methods of the application.
interface Caller {
  start(): void;
  stop(): void;
}

// A method needs what the hooks of the application open, and must end before they close it, or wait for it. Nest calls the
// hooks of its modules by their distance from the root module, in reverse at the shutdown.
export function startedLast(caller: Type<Caller>): Type {
  @Module({})
  class LastModule implements OnApplicationBootstrap, OnModuleDestroy {
    private hasEnded = false;

    constructor(
      @Inject(caller) private readonly methods: Caller,
      @Inject(ModulesContainer) modules: ModulesContainer,
    ) {
      for (const each of modules.values()) if (each.metatype === LastModule) each.distance = -Infinity;
    }

    onApplicationBootstrap(): void {
      if (!this.hasEnded) this.methods.start();
    }

    // Also while the application boots.
    onModuleDestroy(): void {
      this.hasEnded = true;
      this.methods.stop();
    }
  }
  return LastModule;
}

// Of what this instance calls, beside those of a lock service. `log` is the first.
export function observersOf<Part extends 'jobs' | 'elections'>(
  part: Part,
  log: ConstructorParameters<typeof PartObservers<Part>>[1],
  logger: LoggerService,
): PartObservers<Part> {
  return new PartObservers(part, log, reportTo(logger, part));
}
