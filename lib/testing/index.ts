/**
 * Locks without Redis, for tests: real contention on masters in memory, and a clock that the test controls.
 *
 * @packageDocumentation
 */
import type { Clock } from '../index.js';
import { MemoryMaster, SystemClock } from '../internal.js';

export { ManualClock } from '../internal.js';
export { MemoryMaster } from '../internal.js';
export {
  memoryLockService,
  type MemoryLockServiceOptions,
  RedlockTestingModule,
  type RedlockTestingModuleOptions,
  withLocks,
} from './redlock-testing.module.js';

/**
 * Masters in memory, for `RedlockModule.forRoot({ masters: memoryMasters(3) })`. Services with the same masters exclude
 * each other, like applications that share their Redis servers.
 *
 * @param count number of masters; default: 1
 * @param clock the clock by which their keys expire; default: the clock of this process
 */
export function memoryMasters(count = 1, clock: Clock = new SystemClock()): MemoryMaster[] {
  return Array.from({ length: count }, (_, i) => new MemoryMaster(clock, `memory-${i + 1}`));
}
