/**
 * Distributed locks for NestJS over independent Redis masters.
 *
 * @packageDocumentation
 */
export type { Clock, Instant, Timer } from './redlock/clock.js';
export type { Duration, DurationUnit } from './settings/duration.js';
export { isLockError } from './errors.js';
export {
  LockError,
  LockLostError,
  LockServiceStoppedError,
  QuorumUnavailableError,
  type LockLostCause,
  type MasterReport,
} from './redlock/errors.js';
export { LockNotAcquiredError } from './waiting/lock-not-acquired.error.js';
export { LockReentryError, type ReentryProblem } from './locks/lock-reentry.error.js';
export { RedlockConfigError } from './settings/config.error.js';
export type { LockHolder } from './redlock/holder.js';
export type {
  JobConflict,
  JobObserver,
  JobReport,
  JobRunReport,
  JobSkip,
  UnfinishedRun,
} from './operate/job-observer.js';
export type { JobOutcome, JobSkipReason } from './operate/job-record.js';
export type { ElectionObserver, LeaderReport } from './operate/leadership.js';
export { Lock } from './locks/lock.js';
export type { OpenStateRequest, ReadStateRequest, Version, WriteStateRequest } from './fencing/state-entry.js';
export type { LockState, StateSnapshot, StateWriteOptions } from './fencing/lock-state.js';
export type {
  AcquireRequest,
  DrawRequest,
  ExtendRequest,
  InspectRequest,
  LeaveRequest,
  MasterIdentity,
  MasterRequest,
  NotificationListener,
  PickRequest,
  ProbeRequest,
  QueueTicket,
  DeferReadersRequest,
  ReleaseRequest,
  ReplyCallback,
  Sharing,
  MasterReply,
  GrantedReply,
  GoneReply,
  HeldReply,
  Master,
  RefusedReply,
} from './masters/master.interface.js';
export type {
  Gone,
  Granted,
  HeldByOther,
  Quarantine,
  QuarantinedReply,
  Refused,
  Reply,
  TimedOutReply,
  UnreachableReply,
} from './redlock/server.js';
export type {
  AcquisitionKind,
  WakeCause,
  AcquisitionObserver,
  LockObserver,
  ObservedService,
  OnHeld,
  AcquisitionProgress,
} from './operate/observer.js';
export type { HeldLock, LockInspection, PermitInspection, SlotInspection } from './operate/inspector.js';
export type { MasterState, MasterStatus, RedlockStatus } from './operate/status.js';
export type { AcquireOptions, LockMode, RedlockOptions } from './settings/options.js';
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
export type { RedisMasterSource } from './redis/source.interface.js';
export type {
  LoginFunction,
  RedisClusterNode,
  RedisClusterOptions,
  RedisClusterSource,
  RedisLoginOptions,
} from './redis/source.interface.js';
export type { RedisClientSource } from './redis/source.interface.js';
export type {
  DisabledModuleOptions,
  LockingModuleOptions,
  MasterSource,
  RedlockModuleExtras,
  ProvidedOptions,
  RedlockModuleOptions,
  RedlockOptionsFactory,
} from './nest/redlock-module-options.interface.js';
export { RedlockModule } from './nest/redlock.module.js';
export {
  WithLock,
  type ComposableDecorator,
  type HasUnannotated,
  type LockableMethod,
  type LockDecorator,
  type LockKey,
  type LockKeyFits,
  type Misuse,
  type SkipFits,
  type SkippingLockDecorator,
} from './nest/with-lock.decorator.js';
