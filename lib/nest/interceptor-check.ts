import { ApplicationConfig, type DiscoveryService } from '@nestjs/core';
import 'reflect-metadata';
import { RedlockConfigError } from '../settings/config.error.js';
import { methodNamesOf, prototypeOf, type Wrapper } from './application-objects.js';
import { decoratorOf } from './declared-methods.js';
import { type Fate, type HandlerKind, HANDLERS, KNOWN_METADATA, type Method } from './handlers.js';
import { declarationsOf, methodOf, ownerOf } from './lock-declarations.js';

// Marks the classes that `LockInterceptor` creates, and names them in error messages. A registered symbol, so that two
// copies of this package recognize each other's classes.
export const LOCK_INTERCEPTOR = Symbol.for('nestjs-redlock:lock-interceptor');

// Since Nest 12, which this tells from Nest 11: neither package shows its version.
const RUNS_FOR_GATEWAYS = 'getGlobalPreRequestHooks' in ApplicationConfig.prototype;
const OF_CONTROLLERS = ['path', 'microservices:handler_type'];
const ADVICE = 'Write @WithLock(key, options) on the method instead';

// How an application uses a class.
export interface ExaminedClass {
  readonly prototype: object;
  readonly isController: boolean;
  readonly isEnhancer: boolean;
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

interface Examined extends Method {
  // Of this library, which calls it under a lock.
  readonly decorator: string | undefined;
  // As what something else calls it.
  readonly otherwise: HandlerKind | undefined;
  // As what something calls it without interceptors.
  readonly direct: HandlerKind | undefined;
  readonly isHandler: boolean;
  readonly hasInterceptor: boolean;
  readonly isUnderWithLock: boolean;
  readonly hasOwnLock: boolean;
}

// Refuses `LockInterceptor` on methods for which Nest runs no interceptors, and returns warnings of those for which it may run none.
// On a class, it may be meant for other methods: it is refused only if nothing else in the class can be a handler.
export function checkInterceptors(examined: ExaminedClass, fields: Fate): readonly string[] {
  const methods = methodsOf(examined, fields);
  const owner: unknown = examined.prototype.constructor;
  if (typeof owner !== 'function') return [];
  for (const method of methods) refuseOtherCaller(method);
  const warnings = methods.flatMap((method) =>
    method.hasInterceptor ? warningsOfMethod(method, fields) : warningsOfOverride(method),
  );
  return isLocked(owner) ? [...warnings, ...warningsOfClass(owner, methods, fields)] : warnings;
}

// Of a controller, Nest calls what the object itself has, with the metadata of that. Of one that it makes for each request, only the
// source of the class shows it.
export function replacedHandlers(wrapper: Wrapper): readonly string[] {
  const prototype = prototypeOf(wrapper);
  if (!prototype || isLocked(prototype.constructor)) return [];
  const own = Object.getOwnPropertyDescriptors(Object(wrapper.instance) as Record<string, unknown>);
  const isMadeLater = !wrapper.isDependencyTreeStatic();
  const source = isMadeLater ? Function.prototype.toString.call(prototype.constructor).replace(/\s/g, '') : '';
  return methodsOf({ prototype, isController: true, isEnhancer: false }, 'locked').flatMap((method) => {
    const { name, hasInterceptor, hasOwnLock } = method;
    const instead: unknown = own[name]?.value;
    const isReplaced = typeof instead === 'function' ? !isLocked(instead) : source.includes(`this.${name}=`);
    const isHandler = OF_CONTROLLERS.some((key) => Reflect.hasMetadata(key, method.method));
    if (!isHandler || !hasInterceptor || hasOwnLock || !isReplaced) return [];
    return (
      `LockInterceptor on ${nameOf(method)}: its objects have a function in its stead, without the interceptor, and Nest runs ` +
      `that without the lock. Remove what assigns this.${name}, such as this.${name} = this.${name}.bind(this)`
    );
  });
}

// Those that run without an interceptor of the whole application.
export function uninterceptedOf(examined: ExaminedClass, fields: Fate): readonly string[] {
  const methods = methodsOf(examined, fields).filter(({ direct, isEnhancer }) => direct && !isEnhancer);
  return methods.filter(canLackLock).map((method) => `${nameOf(method)} (${method.direct?.what})`);
}

// Without an interceptor of their own.
export function hasMessageHandlers(examined: ExaminedClass): boolean {
  return examined.isController && hasUnlocked(examined, 'microservices:handler_type');
}

// Without an interceptor of their own, where those of the whole application do not run for gateways.
export function hasUnlockedGateways(examined: ExaminedClass): boolean {
  return !RUNS_FOR_GATEWAYS && hasUnlocked(examined, 'websockets:message_mapping');
}

function hasUnlocked(examined: ExaminedClass, key: string): boolean {
  return methodsOf(examined, 'locked').some(
    ({ owner, hasInterceptor, hasOwnLock, method }) =>
      !hasInterceptor && !hasOwnLock && !isLocked(owner) && Reflect.hasMetadata(key, method),
  );
}

// By another decorator of this library than `@WithLock`.
export function hasOtherLock(prototype: object, property: string | symbol): boolean {
  const method = methodOf(prototype, property);
  if (method !== undefined && isLocked(method)) return true;
  return methodsOf({ prototype, isController: true, isEnhancer: false }, 'locked').some(
    ({ name, decorator, isHandler }) =>
      name === property && (decorator !== undefined || (isHandler && isLocked(prototype.constructor))),
  );
}

function warningsOfMethod(method: Examined, fields: Fate): readonly string[] {
  const where = `LockInterceptor on ${nameOf(method)}`;
  if (method.direct) return refuseOrWarn(where, method, method.direct, fields);
  return method.isHandler ? [] : [unknown(where, nameOf(method))];
}

function warningsOfClass(owner: NamedClass, methods: readonly Examined[], fields: Fate): readonly string[] {
  const where = `LockInterceptor on class ${owner.name}`;
  const handlers = methods.filter(({ isHandler }) => isHandler);
  const others = methods.filter(
    (method) => !method.isHandler && !method.direct && !method.hasInterceptor && !method.hasOwnLock,
  );
  const possible = others.filter(({ prototype, name, method }) => isMarked(method) || isMarked(prototype, name));
  const mayBeMeantForOthers = handlers.length > 0 || possible.length > 0 || isMarked(owner);
  const direct = methods.filter(canLackLock).flatMap((method) => {
    if (!method.direct || method.hasInterceptor) return [];
    if (!mayBeMeantForOthers) return refuseOrWarn(where, method, method.direct, fields);
    return `${where} does not lock ${nameOf(method)}, ${method.direct.what}, ${becauseOf(method.direct)}. ${adviceOf(method.direct)}, or the interceptor on the handlers, one by one`;
  });
  if (handlers.length > 0) return [...direct, ...possible.map((method) => unknown(where, nameOf(method)))];
  const [first] = possible.length > 0 ? possible : others;
  return direct.length > 0 && !first ? direct : [...direct, unknown(where, first ? nameOf(first) : 'a method of it')];
}

// The interceptor of an overridden method belongs to that one only, and runs for no call by `super`.
function warningsOfOverride(method: Examined): readonly string[] {
  const { prototype, name, owner, isHandler, hasOwnLock } = method;
  const declared = ownerOf(prototype, name);
  if (!declared || !isHandler || hasOwnLock || isLocked(owner)) return [];
  const base = interceptedAbove(declared, name);
  if (!base) return [];
  const override = `${declared.constructor.name}.${name}`;
  const where = `LockInterceptor on ${base.constructor.name}.${name}`;
  return [
    `${where}: ${override} overrides it without the interceptor, and runs without the lock. Repeat it on ${override}`,
  ];
}

function interceptedAbove(owner: object, name: string): object | undefined {
  const above = Object.getPrototypeOf(owner) as object | null;
  const base = above ? ownerOf(above, name) : undefined;
  if (!base) return undefined;
  const overridden: unknown = Object.getOwnPropertyDescriptor(base, name)?.value;
  return typeof overridden === 'function' && isLocked(overridden) ? base : interceptedAbove(base, name);
}

// The lock of a job or an election is not that of another call.
function refuseOtherCaller(method: Examined): void {
  const { decorator, otherwise, owner, hasInterceptor, isUnderWithLock } = method;
  if (!decorator || !otherwise || hasInterceptor || isUnderWithLock) return;
  if (otherwise.fate === 'locked' && isLocked(owner)) return;
  const where = `${decorator} on ${nameOf(method)}`;
  const requirement = `must not be ${otherwise.what} as well, which runs it without the lock: write @WithLock(key, options) below, or use another method`;
  throw new RedlockConfigError(where, method.method, requirement, `${where} ${requirement}`);
}

function refuseOrWarn(where: string, method: Method, kind: HandlerKind, fields: Fate): readonly string[] {
  const requirement = `cannot lock ${kind.what}, ${becauseOf(kind)}: it would run without the lock. ${adviceOf(kind)}`;
  if (fateOf(kind, fields) === 'refused') throw new RedlockConfigError(where, nameOf(method), requirement);
  return [`${where} may not lock ${kind.what}, ${becauseOf(kind)}, and some do not. ${adviceOf(kind)}`];
}

function unknown(where: string, name: string): string {
  return `${where}: nothing shows that ${name} is a handler, and calls of other code run without the lock. ${ADVICE}`;
}

const becauseOf = ({ because = 'for which Nest runs no interceptors' }: HandlerKind): string => because;
const adviceOf = ({ instead = ADVICE }: HandlerKind): string => instead;
const nameOf = ({ owner, name }: Method): string => `${owner.name}.${name}`;
const fateOf = ({ fate }: HandlerKind, fields: Fate): Fate => (fate === 'fields' ? fields : fate);
const canLackLock = ({ hasOwnLock, direct }: Examined): boolean => !hasOwnLock && !direct?.isOfEveryClass;

function methodsOf({ prototype, isController, isEnhancer }: ExaminedClass, fields: Fate): readonly Examined[] {
  const owner: unknown = prototype.constructor;
  if (typeof owner !== 'function') return [];
  const declarations = declarationsOf(prototype);
  return methodNamesOf(prototype).map((name) => {
    const method = Reflect.get(prototype, name) as object;
    const found: Method = { owner, prototype, name, method, isController, isEnhancer };
    const kinds = HANDLERS.filter((kind) => kind.is(found));
    const decorator = decoratorOf(prototype, name);
    const isUnderWithLock = declarations.some(
      ({ target, property }) => property === name && target === ownerOf(prototype, name),
    );
    return {
      ...found,
      ...{ decorator, isUnderWithLock, hasOwnLock: isUnderWithLock || decorator !== undefined },
      otherwise: kinds.find(({ what }) => what !== `a method under ${decorator}`),
      direct: kinds.find((kind) => fateOf(kind, fields) !== 'locked'),
      isHandler: kinds.some((kind) => fateOf(kind, fields) === 'locked'),
      hasInterceptor: isLocked(method),
    };
  });
}

function isMarked(target: object, property?: string): boolean {
  const keys: unknown[] =
    property === undefined ? Reflect.getMetadataKeys(target) : Reflect.getMetadataKeys(target, property);
  return !keys.every((key) => typeof key === 'string' && KNOWN_METADATA.test(key));
}

function isLocked(target: object): boolean {
  const interceptors: unknown = Reflect.getMetadata('__interceptors__', target);
  return Array.isArray(interceptors) && interceptors.some(isLockInterceptor);
}

export function isLockInterceptor(interceptor: unknown): boolean {
  const made = typeof interceptor === 'object' && interceptor !== null ? interceptor.constructor : interceptor;
  return typeof made === 'function' && LOCK_INTERCEPTOR in made;
}

// Called before Nest creates the interceptors, which check their options then and cannot see where they are used.
export function nameInterceptors(discovery: DiscoveryService): void {
  for (const { metatype } of [...discovery.getControllers(), ...discovery.getProviders()]) {
    const owner: unknown = metatype;
    if (!isClass(owner)) continue;
    nameAll(owner, owner.name);
    for (const name of methodNamesOf(owner.prototype)) {
      nameAll(Reflect.get(owner.prototype, name) as object, `${owner.name}.${name}`);
    }
  }
}

interface NamedClass {
  readonly name: string;
}

function isClass(value: unknown): value is NamedClass & { readonly prototype: object } {
  return typeof value === 'function' && typeof value.prototype === 'object' && value.prototype !== null;
}

function nameAll(target: object, where: string): void {
  const interceptors: unknown = Reflect.getMetadata('__interceptors__', target);
  if (!Array.isArray(interceptors)) return;
  for (const each of interceptors) {
    if (typeof each === 'function' && LOCK_INTERCEPTOR in each) {
      Object.assign(each, { [LOCK_INTERCEPTOR]: `LockInterceptor on ${where}` });
    }
  }
}
