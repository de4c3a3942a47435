/**
 * Distributed locks for NestJS over independent Redis masters.
 *
 * @packageDocumentation
 */
export type { Clock, Instant, Timer } from './core/clock.js';
export type { Duration, DurationUnit } from './core/settings/duration.js';
export {
  LockError,
  LockLostError,
  LockNotAcquiredError,
  LockOrderError,
  LockReentryError,
  type ReentryProblem,
  LockServiceStoppedError,
  QuorumUnavailableError,
  RedlockConfigError,
  type LockLostCause,
  type MasterReport,
} from './core/errors.js';
export type { BlamedHolder, ResourceContention, WaitedTime } from './core/contention/contention.js';
export type { LockHolder } from './core/holder.js';
export { Lock } from './core/lock.js';
export {
  type LockState,
  type StateReadOptions,
  StateUncertainError,
  type StateWriteOptions,
} from './core/state/lock-state.js';
export type { StateSnapshot } from './core/state/state-register.js';
export type {
  MasterReply,
  GrantedReply,
  HeldReply,
  Master,
  Quarantine,
  QuarantinedReply,
  RefusedReply,
  ShardStatus,
  TimedOutReply,
  UnreachableReply,
} from './core/master.interface.js';
export type {
  AcquisitionKind,
  AcquisitionObserver,
  LockObserver,
  ObservedService,
  OnHeld,
  AcquisitionProgress,
} from './core/observer.js';
export type { LockInspection, PermitInspection, SlotInspection } from './core/inspector.js';
export type { MasterState, MasterStatus, RedlockStatus } from './core/health/status.js';
export type { AcquireOptions, LockMode, LockOrderOption, RedlockOptions } from './core/settings/options.js';
export { getLockServiceToken, InjectLockService } from './nest/lock-service.token.js';
export { LockExceptionFilter, type LockExceptionFilterOptions } from './nest/lock-exception.filter.js';
export { LockInterceptor, type LockInterceptorKey } from './nest/lock.interceptor.js';
export type {
  LockedMethodOptions,
  LockedStatus,
  LockInterceptorOptions,
  LockResource,
  WithLockOptions,
} from './nest/lock-options.js';
export { type LockedWork, LockService } from './nest/lock.service.js';
export type { DurableOption } from './redis/recognition.js';
export type { RedisMasterSource } from './redis/master-source.js';
export type { NodeAddress } from './redis/urls.js';
export type { RedisClientSource } from './redis/redis-client.interface.js';
export type {
  RedisClusterNatMap,
  RedisClusterNode,
  RedisClusterOptions,
  RedisClusterSource,
} from './redis/cluster/cluster-source.js';
export type {
  DisabledModuleOptions,
  LockingModuleOptions,
  MasterSource,
  RedlockModuleExtras,
  RedlockModuleOptions,
  RedlockOptionsFactory,
} from './nest/redlock-module-options.interface.js';
export { RedlockModule } from './nest/redlock.module.js';
export {
  WithLock,
  type HasUnannotated,
  type LockableMethod,
  type LockDecorator,
  type LockKey,
  type LockKeyFits,
  type Misuse,
  type SkipFits,
  type SkippingLockDecorator,
} from './nest/with-lock.decorator.js';
