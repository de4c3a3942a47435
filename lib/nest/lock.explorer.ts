import { type DiscoveryService, MetadataScanner } from '@nestjs/core';
import { RedlockConfigError } from '../settings/config.error.js';
import { CALLED_METHODS, decoratorOf } from './declared-methods.js';
import { declarationsOf, methodOf, overridesOf } from './lock-declarations.js';
import { checkLockService, getLockServiceToken } from './lock-service.token.js';
import 'reflect-metadata';
import type { LockService } from './lock.service.js';
import { shortestPeriod } from './module-settings.js';

type Wrapper = ReturnType<DiscoveryService['getProviders']>[number];

// In objects that Nest did not build from a class, and so could not inject into, nothing would show that they never run.
function refuseWithoutModule(wrapper: Wrapper, wrappers: readonly Wrapper[]): void {
  for (const { token, what, module, does } of calledIn(wrapper.instance)) {
    if (wrappers.some((each) => each.token === token)) continue;
    const requirement = `has ${what}s, and ${module}, which ${does} them, is not imported beside RedlockModule`;
    throw new RedlockConfigError('provider', wrapper.name, requirement);
  }
}

// A factory may make an object with such methods after boot, when it is too late to run them.
function refuseLateMethods(wrapper: Wrapper, instance: unknown): void {
  for (const { what } of calledIn(instance)) {
    const requirement = `has ${what}s, and must be a singleton: remove the scope of its factory, and of what is injected into it`;
    throw new RedlockConfigError('provider', wrapper.name, requirement);
  }
}

function calledIn(instance: unknown) {
  if (typeof instance !== 'object' || instance === null) return [];
  return Object.values(CALLED_METHODS).filter(({ key }) => Reflect.hasMetadata(key, instance));
}

// Marks the classes that `LockInterceptor` creates, and names them in error messages. A registered symbol, so that two
// copies of this package recognize each other's classes.
export const LOCK_INTERCEPTOR = Symbol.for('nestjs-redlock:lock-interceptor');

// Packages call these methods without Nest's interceptors. Each metadata key has the decorators that set it.
const CALLED_DIRECTLY = [
  ['SCHEDULER_TYPE', 'a method under @Cron, @Interval or @Timeout'],
  ['EVENT_LISTENER_METADATA', 'a method under @OnEvent'],
  ['bull:module_queue_process', 'a method under @Process'],
  ['bullmq:worker_events_metadata', 'a method under @OnWorkerEvent'],
  ['bullmq:queue_events_metadata', 'a method under @OnQueueEvent'],
] as const;
// So does Nest itself.
const HOOKS = new Set([
  'onModuleInit',
  'onApplicationBootstrap',
  'onModuleDestroy',
  'beforeApplicationShutdown',
  'onApplicationShutdown',
]);
// On a class whose method `process` BullMQ calls.
const BULLMQ_PROCESSOR = 'bullmq:processor_metadata';

// Metadata keys that do not mark a handler: those of the packages above, of injection, and of enhancers.
const NO_HANDLER =
  /^(SCHEDULE|EVENT_LISTENER|bull|design:|self:|optional:|scope:|__(injectable|interceptors|guards|pipes|exceptionFilters)__)/;

// Refuses `LockInterceptor` on a method that is called directly, for which Nest would not run it. On a class, it may be
// meant for other methods: it is refused only if the metadata rules out that anything else in the class is a handler.
// Returns a warning of a method that nothing shows to be a handler: some package may still run it as one.
function refuseUnintercepted(prototype: object): string | undefined {
  const owner: unknown = prototype.constructor;
  if (typeof owner !== 'function') return undefined;
  const methods = new MetadataScanner().getAllMethodNames(prototype).map((name) => ({
    name,
    method: Reflect.get(prototype, name) as object,
  }));
  const isHandler = ({ name, method }: NamedMethod): boolean =>
    !canBeNoHandler(owner) || !canBeNoHandler(method) || !canBeNoHandler(prototype, name);
  const isForClass = isLocked(owner) && !methods.some(isHandler);
  const locked = methods.filter(({ method }) => isForClass || isLocked(method));
  const placeOf = ({ name, method }: NamedMethod): string =>
    `LockInterceptor on ${isLocked(method) ? `${owner.name}.${name}` : `class ${owner.name}`}`;
  const advice = 'Write @WithLock(key, options) on the method instead';
  for (const each of locked) {
    const what = directCallOf(prototype, each);
    if (what === undefined) continue;
    const requirement = `cannot lock ${what}, for which Nest runs no interceptors: it would run without the lock. ${advice}`;
    throw new RedlockConfigError(placeOf(each), `${owner.name}.${each.name}`, requirement);
  }
  const unknown = locked.find((each) => !isHandler(each));
  if (!unknown) return undefined;
  return `${placeOf(unknown)}: nothing shows that ${owner.name}.${unknown.name} is a handler, and calls of other code run without the lock. ${advice}`;
}

interface NamedMethod {
  readonly name: string;
  readonly method: object;
}

function isLocked(target: object): boolean {
  const interceptors: unknown = Reflect.getMetadata('__interceptors__', target);
  return Array.isArray(interceptors) && interceptors.some(isLockInterceptor);
}

function isLockInterceptor(interceptor: unknown): boolean {
  const made = typeof interceptor === 'object' && interceptor !== null ? interceptor.constructor : interceptor;
  return typeof made === 'function' && LOCK_INTERCEPTOR in made;
}

function canBeNoHandler(target: object, property?: string): boolean {
  const keys = property === undefined ? Reflect.getMetadataKeys(target) : Reflect.getMetadataKeys(target, property);
  return keys.every((key) => typeof key === 'string' && NO_HANDLER.test(key));
}

function directCallOf(prototype: object, { name, method }: NamedMethod): string | undefined {
  if (name === 'process' && Reflect.hasMetadata(BULLMQ_PROCESSOR, prototype.constructor))
    return 'a method under @Processor';
  if (HOOKS.has(name)) return 'a hook';
  const decorator = decoratorOf(prototype, name);
  if (decorator !== undefined) return `a method under ${decorator}`;
  return CALLED_DIRECTLY.find(([key]) => Reflect.hasMetadata(key, method))?.[1];
}

// Called before Nest creates the interceptors, which check their options then and cannot see where they are used.
export function nameInterceptors(discovery: DiscoveryService): void {
  for (const { metatype } of [...discovery.getControllers(), ...discovery.getProviders()]) {
    const owner: unknown = metatype;
    if (!isClass(owner)) continue;
    nameAll(owner, owner.name);
    for (const name of new MetadataScanner().getAllMethodNames(owner.prototype)) {
      nameAll(Reflect.get(owner.prototype, name) as object, `${owner.name}.${name}`);
    }
  }
}

function isClass(value: unknown): value is { readonly name: string; readonly prototype: object } {
  return typeof value === 'function' && typeof value.prototype === 'object' && value.prototype !== null;
}

function nameAll(target: object, place: string): void {
  const interceptors: unknown = Reflect.getMetadata('__interceptors__', target);
  if (!Array.isArray(interceptors)) return;
  for (const each of interceptors) {
    if (typeof each === 'function' && LOCK_INTERCEPTOR in each) {
      Object.assign(each, { [LOCK_INTERCEPTOR]: `LockInterceptor on ${place}` });
    }
  }
}

// An application that boots later with one of these objects replaces the service in it by its own.
const handedOver = new WeakSet<object>();

// Examines all providers and controllers at boot: checks the options of each `@WithLock`, hands the lock service to
// objects that Nest did not build from a class and so could not inject into, and refuses interceptors that never run.
export class LockExplorer {
  private readonly host: symbol;
  private readonly checked = new Set<object>();
  private readonly noted = new Set<string>();

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly locks: LockService,
    private readonly name: string | null,
  ) {
    this.host = getLockServiceToken(name ?? undefined);
  }

  explore(): void {
    const wrappers = [...this.discovery.getProviders(), ...this.discovery.getControllers()];
    this.refuseTwin(wrappers);
    for (const wrapper of wrappers) {
      refuseWithoutModule(wrapper, wrappers);
      if (wrapper.isFactory) {
        this.handOverLater(wrapper);
        for (const made of wrapper.getStaticTransientInstances()) {
          refuseLateMethods(wrapper, made?.instance);
          this.handOver(made?.instance);
        }
      } else if (wrapper.metatype) {
        this.check((wrapper.metatype as { prototype?: object }).prototype);
      }
      this.handOver(wrapper.instance);
    }
  }

  // With two services of one name, the service of an object that Nest did not build would be ambiguous.
  private refuseTwin(wrappers: readonly Wrapper[]): void {
    const services = wrappers.filter(({ token }) => token === this.host).map(({ instance }) => instance as unknown);
    if (new Set(services).size < 2) return;
    const requirement =
      'must be different for each lock service of one application: RedlockModule.forRoot() is global, so import it once, ' +
      'in the root module, or give each of several another name';
    throw new RedlockConfigError('name', this.name ?? undefined, requirement);
  }

  private check(prototype: object | null | undefined): void {
    if (!prototype || this.checked.has(prototype)) return;
    this.checked.add(prototype);
    const warning = refuseUnintercepted(prototype);
    if (warning !== undefined) this.note(warning);
    for (const { method, options, resources, property, isInTransaction } of declarationsOf(prototype)) {
      if (!this.isMine(options.service)) continue;
      checkLockService(method, this.locks);
      this.locks.check(method, options);
      this.locks.checkNames(method, resources, options);
      const locked = methodOf(prototype, property);
      if (locked) this.locks.checkPeriod(method, options, shortestPeriodOf(locked));
      if (isInTransaction()) {
        this.note(
          `${method}: a decorator above it begins a transaction, which commits after the lock was released: the next holder may ` +
            'not see what was written. Write @WithLock above @Transactional',
        );
      }
    }
    for (const { declaration, name } of overridesOf(prototype)) {
      if (!this.isMine(declaration.options.service)) continue;
      this.note(
        `${declaration.method}: ${name} overrides it without the decorator, and runs without the lock. Repeat @WithLock on ` +
          `${name}, or call the overridden method`,
      );
    }
  }

  // Once, although several classes may inherit it.
  private note(mistake: string): void {
    if (this.noted.has(mistake)) return;
    this.noted.add(mistake);
    this.locks.noteMistake(mistake);
  }

  private handOver(instance: unknown): void {
    if (typeof instance !== 'object' || instance === null) return;
    const prototype = Object.getPrototypeOf(instance) as object | null;
    this.check(prototype);
    if (!prototype || !declarationsOf(prototype).some(({ options }) => this.isMine(options.service))) return;
    const injected = Reflect.get(instance, this.host) !== undefined && !handedOver.has(instance);
    if (injected) return;
    Reflect.set(instance, this.host, this.locks);
    handedOver.add(instance);
  }

  // Nest creates request-scoped and transient providers after boot, too.
  private handOverLater(wrapper: Wrapper): void {
    const make = wrapper.metatype as (...args: unknown[]) => unknown;
    wrapper.metatype = async (...args: unknown[]) => {
      const instance = await make(...args);
      refuseLateMethods(wrapper, instance);
      this.handOver(instance);
      return instance;
    };
  }

  private isMine(service: string | undefined): boolean {
    return (service ?? null) === this.name;
  }
}

// In milliseconds, of a method under `@Cron` or `@Interval`; `undefined` if it has neither, or a schedule of another
// kind.
function shortestPeriodOf(method: object): number | undefined {
  const interval = Reflect.getMetadata('SCHEDULE_INTERVAL_OPTIONS', method) as { timeout?: unknown } | undefined;
  if (typeof interval?.timeout === 'number') return interval.timeout;
  const cron = Reflect.getMetadata('SCHEDULE_CRON_OPTIONS', method) as { cronTime?: unknown } | undefined;
  return typeof cron?.cronTime === 'string' ? shortestPeriod(cron.cronTime) : undefined;
}
