// What the other entries of this package use beside the public API. `nestjs-redlock/internal` has no promises: any release
// may change it.
export { elapsedSince, pause } from './redlock/clock.js';
export * as display from './settings/display.js';
export { describeReply } from './redlock/errors.js';
export { quorumWithin } from './operate/status.js';
export * as inspections from './operate/inspector.js';
export * as jobRecords from './operate/job-record.js';
export { ACQUIRE_OPTIONS } from './settings/settings.js';
export * as schema from './settings/table.js';
export { jsonFrom } from './fencing/state-value.js';
export { ManualClock } from './memory/manual-clock.js';
export { MemoryMaster } from './memory/memory-master.js';
export * as calledMethods from './nest/declared-methods.js';
export { resolveFixedKey } from './nest/lock-options.js';
export { getReplacementToken, lockServicesIn } from './nest/lock-service.token.js';
export { refuseStream } from './nest/lockable-method.js';
export { logTo } from './nest/log-observer.js';
export { createMemoryRuntime, MEMORY_OPTIONS } from './nest/memory-runtime.js';
export { shortestPeriod } from './nest/module-settings.js';
export { assignLockService } from './nest/with-lock.decorator.js';
export { apart, SystemClock } from './runtime/system-clock.js';
