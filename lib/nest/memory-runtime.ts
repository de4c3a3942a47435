import type { Clock } from '../redlock/clock.js';
import { ObserverHub } from '../operate/observer.js';
import { LockManager } from '../locks/lock-manager.js';
import type { RedlockOptions } from '../settings/options.js';
import { REDLOCK_OPTIONS, resolveSettings } from '../settings/settings.js';
import { list, objectWith, optional, parseOptions } from '../settings/table.js';
import { MemoryMaster } from '../memory/memory-master.js';
import { SystemClock } from '../runtime/system-clock.js';
import { defaultInstance, ownController, SystemRandom } from '../runtime/system.js';
import { LockService } from './lock.service.js';
import { clockOption } from './module-settings.js';
import { RedlockRuntime } from './redlock.runtime.js';

interface MemoryRuntimeOptions extends RedlockOptions {
  readonly masters?: readonly MemoryMaster[];
  readonly clock?: Clock;
}

const OWN_OPTIONS = {
  masters: optional(list('a list of at least one master in memory', objectWith<MemoryMaster>(['ask', 'pause']), 1)),
  clock: clockOption,
};

export const MEMORY_OPTIONS = { ...REDLOCK_OPTIONS, ...OWN_OPTIONS };

// Without Redis, and without a module that starts it.
export function createMemoryRuntime(options: MemoryRuntimeOptions): RedlockRuntime {
  const { clock = new SystemClock(), masters = [new MemoryMaster(clock)] } = parseOptions(OWN_OPTIONS, options);
  const { instance = defaultInstance() } = options;
  const settings = resolveSettings({ ...options, instance }, masters.length);
  const hub = new ObserverHub();
  const surroundings = { clock, random: new SystemRandom(), observer: hub.observer, controller: ownController };
  const redlock = new LockManager(masters, settings, surroundings);
  void redlock.masters.open();
  return new RedlockRuntime(new LockService(() => redlock, settings, undefined, hub, true, masters), redlock, 0);
}
