import 'reflect-metadata';
import type { Duration } from '../settings/duration.js';
import { isLockError } from '../errors.js';
import { RedlockConfigError } from '../settings/config.error.js';
import type { OnHeld } from '../operate/observer.js';
import { checkPermits, resolveResources } from '../settings/resources.js';
import type { LockScope } from './lock-scope.js';
import {
  checkArguments,
  type LockedMethodOptions,
  type LockResource,
  optionsOf,
  resolveFixedKey,
  type WithLockOptions,
} from './lock-options.js';
import { declarationsOf, declare, type LockDeclaration } from './lock-declarations.js';
import { checkLockService, tokenFor } from './lock-service.token.js';
import type { LockService, WorkSettings } from './lock.service.js';
import { rejectOnThrow } from './locked-stream.js';
import { watchTransactions } from './transaction-order.js';
import { injectProperty, memberOf, refuseStandard, refuseStream } from './lockable-method.js';
import { living } from './stand-ins.js';

/** What to lock: fixed, or computed from the arguments of the method. */
export type LockKey = LockResource | ((...args: never[]) => LockResource);

type KeyFunction = Extract<LockKey, (...args: never[]) => unknown>;

/** What `@WithLock` can lock: a method that returns a promise. */
export type LockableMethod = (...args: never[]) => PromiseLike<unknown>;

/** An explanation that the compiler shows. */
export interface Misuse<Explanation extends string> {
  /** What is wrong. */
  readonly error: Explanation;
}

/** Turns a key function that does not fit the method into a compile error that says so. */
export type LockKeyFits<Key extends LockKey, Method extends LockableMethod> = Key extends (...args: never[]) => unknown
  ? HasUnannotated<Parameters<Key>> extends true
    ? Misuse<'annotate the parameters of the key function, as in (id: string) => ...'>
    : Parameters<Method> extends Parameters<Key>
      ? unknown
      : Parameters<Method> extends [...Parameters<Key>, ...unknown[]]
        ? unknown
        : Misuse<'the key function does not fit the arguments of this method'>
  : unknown;

/** Whether a parameter has no type: the compiler infers `never` for it. */
export type HasUnannotated<Args extends readonly unknown[]> = Args extends readonly [infer First, ...infer Rest]
  ? [First] extends [never]
    ? true
    : HasUnannotated<Rest>
  : false;

/** Turns `onLocked: 'skip'` on a method that must give a value into a compile error that says so. */
export type SkipFits<Method extends LockableMethod> =
  undefined extends Awaited<ReturnType<Method>>
    ? unknown
    : Misuse<`onLocked: 'skip' gives undefined, which the result of this method does not include`>;

/**
 * Makes a decorator a `MethodDecorator`, for `applyDecorators` and decorators of your own, which the compiler does not
 * compare with a method. It cannot be called as such: no decorator has a `this`.
 */
export type ComposableDecorator = <T>(
  this: Misuse<'the decorator does not fit this method'>,
  target: object,
  property: string | symbol,
  descriptor: TypedPropertyDescriptor<T>,
) => void;

/** The decorator that {@link WithLock} returns. */
export type LockDecorator<Key extends LockKey> = ComposableDecorator &
  (<Method extends LockableMethod>(
    target: object,
    property: string | symbol,
    descriptor: TypedPropertyDescriptor<Method> & LockKeyFits<Key, Method>,
  ) => void);

/** Like {@link LockDecorator}, for methods whose result may be `undefined`. */
export type SkippingLockDecorator<Key extends LockKey> = ComposableDecorator &
  (<Method extends LockableMethod>(
    target: object,
    property: string | symbol,
    descriptor: TypedPropertyDescriptor<Method> & LockKeyFits<Key, Method> & SkipFits<Method>,
  ) => void);

/**
 * Runs a method under a lock: acquires the lock before the call, extends it meanwhile, and releases it afterwards. For
 * methods that return a promise, of any class that Nest manages. For Observables and streams use `LockInterceptor`.
 *
 * ```ts
 * @WithLock((orderId: string) => `order:${orderId}`, '10s')
 * async ship(orderId: string, by: User) { ... }
 * ```
 *
 * Write it above `@Transactional`, so that the transaction commits before the release.
 *
 * @param key what to lock: a name, several names to acquire together, or a function of the method's arguments, which may
 * throw an `HttpException`
 * @param options the ttl in milliseconds or as a string such as `'10s'`, or {@link LockedMethodOptions}; default: those of
 * the module
 * @throws {RedlockConfigError} at class definition, on a static method, an accessor or a generator, and for an invalid
 * key or service name; at boot, for an invalid ttl or option
 *
 * The method then also rejects with:
 * - {@link LockNotAcquiredError}: another holder keeps the resource until `wait` ends, unless `onLocked` says otherwise
 * - `QuorumUnavailableError`: too few masters vote before `wait` ends
 * - `LockLostError`: the lock was lost while the method ran, even if the method returned a value
 * - `LockReentryError`: the call chain already holds the resource, and `reentrant` is not set
 * - `LockServiceStoppedError`: the application is shutting down
 * - {@link RedlockConfigError}: the key function returned no valid key, Nest does not manage the object, or the method
 *   returned an Observable, an iterator or a stream
 *
 * Errors of the method itself are rethrown unchanged.
 */
export function WithLock<const Key extends LockKey>(
  key: Key,
  options?: Duration | (LockedMethodOptions & { onLocked?: Exclude<LockedMethodOptions['onLocked'], 'skip'> }),
): LockDecorator<Key>;
export function WithLock<const Key extends LockKey>(
  key: Key,
  options: Duration | LockedMethodOptions | undefined,
): SkippingLockDecorator<Key>;
export function WithLock<const Key extends LockKey>(
  key: Key,
  options?: Duration | LockedMethodOptions,
  ...surplus: readonly unknown[]
): LockDecorator<Key> {
  refuseStandard('@WithLock', options);
  // Used as the decorator itself, it receives a prototype or a class.
  if (surplus.length > 0 && typeof options === 'string' && isObject(key) && Object.hasOwn(key, options)) {
    throw new RedlockConfigError('@WithLock', options, 'needs parentheses and a key: @WithLock(key)');
  }
  checkArguments('@WithLock', key, surplus);
  const given = optionsOf(options);
  const decorate = <Method extends LockableMethod>(
    target: object,
    property: string | symbol,
    descriptor: TypedPropertyDescriptor<Method> & LockKeyFits<Key, Method>,
  ): void => {
    const { where, method } = memberOf('@WithLock', target, property, descriptor);
    const host = tokenFor(where, given);
    const fixed = typeof key === 'function' ? undefined : resolveFixedKey(where, key);
    injectProperty(target, host);

    // At the first call: boot reads the options before, and names one that cannot be read.
    let asked: Asked | undefined;
    const settings = new WeakMap<LockService, WorkSettings>();
    const settingsOf = (service: LockService, wanted: WithLockOptions): WorkSettings => {
      let known = settings.get(service);
      if (!known) settings.set(service, (known = service.workSettings(wanted)));
      return known;
    };
    const check = (returned: unknown): void => void refuseStream(where, returned);
    const locked = (self: object, args: never[]): Promise<unknown> => {
      const { wanted, onLocked, onHeld } = (asked ??= askedFor(given));
      const service = lockServiceOf(self, host, where);
      const resources = fixed ?? resolveResources(`${where}: key`, Reflect.apply(key as KeyFunction, self, args));
      checkPermits(resources, wanted.permits, where);
      const work = (): unknown => Reflect.apply(method, self, args);
      const otherwise = onLocked && ((error: unknown) => fallbackResult(where, service, { error, onLocked }));
      return service.runLocked(resources, settingsOf(service, wanted), {
        work,
        check,
        onHeld,
        otherwise,
        caller: where,
      });
    };
    // A Proxy keeps name, length and own properties of the method; metadata is stored by the identity of the function,
    // so it is copied.
    const handler: ProxyHandler<Method> = {
      apply: (_, self: object, args: never[]) => rejectOnThrow(() => locked(self, args)),
    };
    const proxy = new Proxy(method, handler);
    for (const metadata of Reflect.getOwnMetadataKeys(method)) {
      Reflect.defineMetadata(metadata, Reflect.getOwnMetadata(metadata, method), proxy);
    }
    const isInTransaction = watchTransactions(handler, { target, property, method, locked: proxy });
    declare(target, { method: where, options: given, resources: fixed ?? [], target, property, isInTransaction });
    descriptor.value = proxy;
    // A decorator above may call what the class has by then, and not what it is given.
    Reflect.defineProperty(target, property, descriptor);
  };
  return decorate as LockDecorator<Key>;
}

interface Otherwise {
  readonly otherwise: unknown;
}

type Handled = Exclude<LockedMethodOptions['onLocked'], 'throw' | undefined>;

interface Asked {
  readonly wanted: WithLockOptions;
  // Absent if the call rejects.
  readonly onLocked: Handled | undefined;
  readonly onHeld: OnHeld;
}

function askedFor({
  onLocked = 'throw',
  service: _,
  ...wanted
}: LockedMethodOptions & { signal?: AbortSignal }): Asked {
  if (onLocked === 'throw') return { wanted, onLocked: undefined, onHeld: 'fail' };
  const isSkipped = onLocked === 'skip';
  return { wanted: isSkipped ? { ...wanted, wait: wanted.wait ?? 0 } : wanted, onLocked, onHeld: 'skip' };
}

async function fallbackResult(
  where: string,
  service: LockService,
  { error, onLocked }: { readonly error: unknown; readonly onLocked: Handled },
): Promise<unknown> {
  if (onLocked === 'skip' && isLockError(error, 'LOCK_SERVICE_STOPPED') && error.wasHeld) return undefined;
  if (!isLockError(error, 'LOCK_NOT_ACQUIRED')) throw error;
  service.noteSkip(where, error);
  return onLocked === 'skip' ? undefined : await onLocked(error);
}

export async function acquireOrFallback(
  service: LockService,
  resources: readonly string[],
  options: LockedMethodOptions & { signal?: AbortSignal },
  where: string,
): Promise<LockScope | Otherwise> {
  const { wanted, onLocked, onHeld } = askedFor(options);
  checkPermits(resources, wanted.permits, where);
  try {
    return await service.hold(resources, wanted, onHeld, where);
  } catch (error) {
    if (!onLocked) throw error;
    return { otherwise: await fallbackResult(where, service, { error, onLocked }) };
  }
}

function lockServiceOf(self: object, host: symbol, where: string): LockService {
  const service: unknown = Reflect.get(Object(self), host);
  if (service !== undefined) {
    checkLockService(where, service);
    return living(service);
  }
  throw new RedlockConfigError(
    where,
    self,
    'has no LockService, so it does not run: let Nest create the object, import RedlockModule.forRoot(), and call ' +
      'the method after the constructor, and no earlier than onApplicationBootstrap if a factory made the object. In a test, wrap an object that ' +
      'Nest did not create: withLocks(object) of nestjs-redlock/testing',
  );
}

export function assignLockService(target: object, service: LockService): readonly LockDeclaration[] {
  const declarations = declarationsOf(target);
  for (const { method, options } of declarations) {
    checkLockService(method, service);
    service.check(method, options);
    Reflect.set(target, tokenFor(method, options), service);
  }
  return declarations;
}

function isObject(value: unknown): value is object {
  return typeof value === 'function' || (typeof value === 'object' && value !== null && !Array.isArray(value));
}
