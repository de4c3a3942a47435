import type { Clock } from '../core/clock.js';
import { SystemClock } from '../runtime/system-clock.js';
import { RedlockConfigError } from '../core/errors.js';
import { checkOptionNames } from '../core/settings/option-names.js';
import { defaultInstance } from '../runtime/instance.js';
import { SystemRandom } from '../runtime/system-random.js';
import { ObserverHub } from '../core/observer.js';
import { Redlock } from '../core/redlock.js';
import type { RedlockOptions } from '../core/settings/options.js';
import { REDLOCK_OPTIONS, resolveSettings } from '../core/settings/settings.js';
import { list, objectWith, optional, parseOptions, type TableOf } from '../core/settings/table.js';
import { LockService } from '../nest/lock.service.js';
import { clockOption } from '../nest/module-settings.js';
import { RedlockRuntime } from '../nest/redlock.runtime.js';
import { MemoryMaster } from '../memory/memory-master.js';
import { assignLockService } from '../nest/with-lock.decorator.js';

/** Options of {@link memoryLockService}: the module's options for locks, the masters and the clock. */
export interface MemoryLockServiceOptions extends RedlockOptions {
  /**
   * The masters that store the locks. Services with the same masters exclude each other.
   * @default one master of its own
   */
  masters?: readonly MemoryMaster[];
  /**
   * Source of time; pass the same one to the masters.
   * @default the clocks of this process
   */
  clock?: Clock;
}

const OWN_OPTIONS = {
  masters: optional(list('a list of at least one master in memory', objectWith<MemoryMaster>(['ask', 'pause']), 1)),
  clock: clockOption,
};

export const MEMORY_OPTIONS = { ...REDLOCK_OPTIONS, ...OWN_OPTIONS } satisfies TableOf<MemoryLockServiceOptions>;

/**
 * Creates a lock service without a module and without Redis, with real locks: for objects that a test creates itself,
 * as another process beside an application, and as a replacement for the application's own service:
 *
 * ```ts
 * Test.createTestingModule({ imports: [AppModule] }).overrideProvider(LockService).useValue(memoryLockService());
 * ```
 *
 * Replace a service that was registered with a name by `overrideProvider(getLockServiceToken(name))`.
 *
 * @param options {@link MemoryLockServiceOptions}; all of them are optional
 *
 * @throws {RedlockConfigError} for an invalid option
 */
export function memoryLockService(options: MemoryLockServiceOptions = {}): LockService {
  checkOptionNames('memoryLockService', options, MEMORY_OPTIONS);
  return createMemoryRuntime(options).service;
}

export function createMemoryRuntime(options: MemoryLockServiceOptions): RedlockRuntime {
  const { clock = new SystemClock(), masters = [new MemoryMaster(clock)] } = parseOptions(OWN_OPTIONS, options);
  const { instance = defaultInstance() } = options;
  const settings = resolveSettings({ ...options, instance }, masters.length);
  const hub = new ObserverHub();
  const redlock = new Redlock(masters, settings, { clock, random: new SystemRandom(), observer: hub.observer });
  void redlock.open();
  return new RedlockRuntime(new LockService(() => redlock, settings, undefined, hub), redlock, 0);
}

/**
 * Gives an object that Nest did not create the lock service that its `@WithLock` methods use:
 *
 * ```ts
 * const orders = withLocks(new OrderService(carrier));
 * ```
 *
 * @param object an object whose class has `@WithLock` methods. Objects that it refers to are not changed.
 * @param locks serves all its methods, including those that name another service; default: a new `memoryLockService()`
 * @returns the same object
 * @throws {RedlockConfigError} if the object has no `@WithLock` method, for an invalid option of `@WithLock`, and for a
 * mock in place of `locks`
 */
export function withLocks<T extends object>(object: T, locks: LockService = memoryLockService()): T {
  if (typeof object !== 'object' || (object as T | null) === null) {
    throw new RedlockConfigError('withLocks', object, 'needs an object, as in withLocks(new OrderService())');
  }
  if (assignLockService(object, locks).length === 0) {
    throw new RedlockConfigError('withLocks', object, 'needs an object whose class has a @WithLock method');
  }
  return object;
}
