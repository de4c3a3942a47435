import type { DiscoveryService, ModuleRef } from '@nestjs/core';
import { RedlockConfigError } from '../settings/config.error.js';
import {
  type ApplicationObjects,
  globalInterceptorsOf,
  hasHttp,
  objectsOf,
  prototypeOf,
  type Wrapper,
} from './application-objects.js';
import type { Fate } from './handlers.js';
import { CALLED_METHODS } from './declared-methods.js';
import {
  checkInterceptors,
  type ExaminedClass,
  fateOfFields,
  hasMessageHandlers,
  hasOtherLock,
  hasUnlockedGateways,
  isLockInterceptor,
  replacedHandlers,
  uninterceptedOf,
} from './interceptor-check.js';
import { declarationsOf, methodOf, overridesOf } from './lock-declarations.js';
import { checkLockService, getLockServiceToken, isLockService } from './lock-service.token.js';
import 'reflect-metadata';
import type { LockService } from './lock.service.js';
import { shortestPeriod } from './module-settings.js';
import { living, standIn } from './stand-ins.js';
import { checkTakers } from './takers.js';

// In objects that Nest did not build from a class, and so could not inject into, nothing would show that they never run.
function refuseWithoutModule(made: Pick<Wrapper, 'name' | 'instance'>, { providers }: ApplicationObjects): void {
  for (const { token, what, module, does } of calledIn(made.instance)) {
    if (providers.some((each) => each.token === token)) continue;
    const requirement = `has ${what}s, and ${module}, which ${does} them, is not imported beside RedlockModule`;
    throw new RedlockConfigError('provider', made.name, requirement);
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

const LISTED = 5;

function listed(names: readonly string[]): string {
  const more = names.length - LISTED;
  return names.slice(0, LISTED).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

function classesOf({ providers, controllers, enhancers, given }: ApplicationObjects): readonly ExaminedClass[] {
  const prototypes = (wrappers: readonly Wrapper[]) => new Set(wrappers.map(prototypeOf));
  const [ofControllers, ofEnhancers] = [
    prototypes(controllers),
    prototypes([...enhancers, ...providers.filter(({ subtype }) => subtype !== undefined)]),
  ];
  for (const each of given) ofEnhancers.add(Object.getPrototypeOf(each) as object);
  const all = new Set([...prototypes(providers), ...ofControllers, ...ofEnhancers]);
  return [...all].flatMap((prototype) =>
    prototype ? { prototype, isController: ofControllers.has(prototype), isEnhancer: ofEnhancers.has(prototype) } : [],
  );
}

// An application that boots later with one of these objects replaces the service in it by its own, if that has ended.
const handedOver = new WeakSet<object>();

// Examines all objects of an application at boot: checks the options of each `@WithLock`, hands the lock service to
// objects that Nest did not build from a class and so could not inject into, and refuses interceptors that never run.
export class LockExplorer {
  private readonly host: symbol;
  private readonly checked = new Set<object>();
  private readonly noted = new Set<string>();
  private readonly intercepted = new Set<object>();
  private fields: Fate = 'refused';

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly locks: LockService,
    private readonly name: string | null,
    private readonly modules: ModuleRef,
  ) {
    this.host = getLockServiceToken(name ?? undefined);
  }

  explore(): void {
    const objects = objectsOf(this.discovery, this.modules);
    this.refuseTwin(objects.providers);
    if (isLockService(this.locks)) this.locks.standIns ??= new Set([this.locks]);
    this.checkInterceptors(objects);
    for (const each of objects.given) {
      refuseWithoutModule({ name: each.constructor.name, instance: each }, objects);
      this.handOver({ name: each.constructor.name }, each);
    }
    for (const wrapper of [...objects.providers, ...objects.controllers, ...objects.enhancers]) {
      refuseWithoutModule(wrapper, objects);
      if (wrapper.isFactory) {
        this.handOverLater(wrapper);
        for (const made of wrapper.getStaticTransientInstances()) {
          refuseLateMethods(wrapper, made?.instance);
          this.handOver(wrapper, made?.instance);
        }
      } else if (wrapper.metatype) {
        this.check((wrapper.metatype as { prototype?: object }).prototype);
      }
      this.handOver(wrapper, wrapper.instance);
    }
    checkTakers(this.locks, (prototype) => this.check(prototype));
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

  private checkInterceptors(objects: ApplicationObjects): void {
    this.fields = fateOfFields(objects.providers);
    const classes = classesOf(objects);
    for (const each of classes) this.checkInterceptorsOf(each);
    for (const mistake of objects.controllers.flatMap(replacedHandlers)) this.note(mistake);
    if (!globalInterceptorsOf(objects, this.modules).some(isLockInterceptor)) return;
    const unlocked = [...new Set(classes.flatMap((each) => uninterceptedOf(each, this.fields)))];
    if (unlocked.length > 0) {
      this.note(
        `LockInterceptor for all handlers does not lock ${listed(unlocked)}, for which Nest runs no interceptors. Write ` +
          '@WithLock(key, options) on what needs the lock, or the interceptor on the handlers, one by one',
      );
    }
    if (classes.some(hasUnlockedGateways)) {
      this.note(
        'LockInterceptor for all handlers does not lock those of gateways before Nest 12. Write the interceptor on their classes',
      );
    }
    if (classes.some(hasMessageHandlers) && hasHttp(this.modules)) {
      this.note(
        'LockInterceptor for all handlers locks those of messages only if connectMicroservice is given ' +
          '{ inheritAppConfig: true }. Give it that, or write the interceptor on their classes',
      );
    }
  }

  private checkInterceptorsOf(examined: ExaminedClass): void {
    if (this.intercepted.has(examined.prototype)) return;
    this.intercepted.add(examined.prototype);
    for (const mistake of checkInterceptors(examined, this.fields)) this.note(mistake);
  }

  private check(prototype: object | null | undefined): void {
    if (!prototype || this.checked.has(prototype)) return;
    // One that a factory has made after boot.
    this.checkInterceptorsOf({ prototype, isController: false, isEnhancer: false });
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
    this.checkOverrides(prototype, prototype);
    // Not before: what is wrong now is wrong for the next object, too.
    this.checked.add(prototype);
  }

  private checkOverrides(owner: object, prototype: object): void {
    for (const { declaration, name } of overridesOf(owner)) {
      if (!this.isMine(declaration.options.service) || hasOtherLock(prototype, declaration.property)) continue;
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

  private handOver({ name }: Pick<Wrapper, 'name'>, instance: unknown): void {
    if (typeof instance !== 'object' || instance === null) return;
    const prototype = Object.getPrototypeOf(instance) as object | null;
    this.check(prototype);
    if (!prototype || !declarationsOf(prototype).some(({ options }) => this.isMine(options.service))) return;
    this.checkOverrides(instance, prototype);
    const given: unknown = Reflect.get(instance, this.host);
    if (given === this.locks) return;
    // One that is outside of an application was given by a test.
    if (isLockService(given) && given.standIns && isLockService(this.locks)) {
      const other = living(given);
      if (!other.isStopped) {
        standIn(String(name), instance, other, this.locks);
        return;
      }
    } else if (given !== undefined && !handedOver.has(instance)) return;
    Reflect.set(instance, this.host, this.locks);
    handedOver.add(instance);
  }

  // Nest creates request-scoped and transient providers after boot, too.
  private handOverLater(wrapper: Wrapper): void {
    const make = wrapper.metatype as (...args: unknown[]) => unknown;
    wrapper.metatype = async (...args: unknown[]) => {
      const instance = await make(...args);
      refuseLateMethods(wrapper, instance);
      this.handOver(wrapper, instance);
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
