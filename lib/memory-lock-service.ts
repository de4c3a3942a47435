import { type Clock, SystemClock } from './core/clock.js';
import { RedlockConfigError } from './core/errors.js';
import { checkOptionNames } from './core/option-names.js';
import { SystemRandom } from './core/random.js';
import { Redlock } from './core/redlock.js';
import { REDLOCK_OPTION_NAMES, type RedlockOptions } from './core/options.js';
import { resolveSettings } from './core/settings.js';
import { LockService } from './lock.service.js';
import { MemoryMaster } from './memory/memory-master.js';

/** Options of {@link memoryLockService}: those of the module that are about locks, and what the locks are in. */
export interface MemoryLockServiceOptions extends RedlockOptions {
  /**
   * Where the locks are. Services that are given the same masters lock each other out.
   * @default one master of its own
   */
  masters?: readonly MemoryMaster[];
  /**
   * Source of time; give the masters the same one.
   * @default the clocks of this process
   */
  clock?: Clock;
}

const OPTION_NAMES = [
  ...REDLOCK_OPTION_NAMES,
  'masters',
  'clock',
] as const satisfies (keyof MemoryLockServiceOptions)[];

/**
 * A lock service without a module and without Redis, with real locks. In place of the application's own it serves
 * decorators and interceptors, too, and nothing is connected:
 *
 * ```ts
 * Test.createTestingModule({ imports: [AppModule] }).overrideProvider(LockService).useValue(memoryLockService());
 * ```
 *
 * A service that was registered with a name is replaced by `overrideProvider(getLockServiceToken(name))`.
 *
 * @throws {RedlockConfigError} for an option that cannot work
 */
export function memoryLockService(options: MemoryLockServiceOptions = {}): LockService {
  checkOptionNames('memoryLockService', options, OPTION_NAMES);
  const { clock = new SystemClock(), masters = [new MemoryMaster(clock)], ...rest } = options;
  if (masters.length === 0) throw new RedlockConfigError('masters', masters, 'must be a list of at least one master');
  const settings = resolveSettings(rest, masters.length);
  const redlock = new Redlock(masters, settings, { clock, random: new SystemRandom(), observer: {} });
  redlock.open();
  return new LockService(() => redlock, settings);
}
