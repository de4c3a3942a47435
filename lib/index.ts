/**
 * Distributed locks for NestJS over independent Redis masters.
 *
 * @packageDocumentation
 */
export type { Clock, Instant, Timer } from './core/clock.js';
export type { Duration, DurationUnit } from './core/duration.js';
export {
  LockError,
  LockLostError,
  LockNotAcquiredError,
  LockReentryError,
  LockServiceStoppedError,
  QuorumUnavailableError,
  RedlockConfigError,
  type LockLostCause,
  type MasterReport,
} from './core/errors.js';
export { Lock } from './core/lock.js';
export type {
  Answer,
  Granted,
  Held,
  Master,
  Quarantine,
  Quarantined,
  Refused,
  TimedOut,
  Unreachable,
} from './core/master.interface.js';
export type {
  AcquisitionObserver,
  Observer as LockObserver,
  OnHeld,
  Progress as AcquisitionProgress,
} from './core/observer.js';
export type { Inspection } from './core/redlock.js';
export type { MasterStatus, Status } from './core/status.js';
export type { AcquireOptions, RedlockOptions } from './core/options.js';
export { getLockServiceToken, InjectLockService } from './lock-service.token.js';
export { LockInterceptor, type LockInterceptorKey } from './lock.interceptor.js';
export type { LockedMethodOptions, LockResource, WithLockOptions } from './lock-options.interface.js';
export { LockService } from './lock.service.js';
export type { DurableOption, RedisMasterSource } from './redis/master-source.js';
export type { RedisClientSource } from './redis/redis-client.interface.js';
export type {
  MasterSource,
  RedlockModuleExtras,
  RedlockModuleOptions,
  RedlockOptionsFactory,
} from './redlock-module-options.interface.js';
export { RedlockModule } from './redlock.module.js';
export { WithLock, type LockableMethod, type LockKey, type LockKeyFits } from './with-lock.decorator.js';
