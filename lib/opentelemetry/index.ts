/**
 * Spans and metrics through `@opentelemetry/api`, which is an optional peer of this package.
 *
 * @packageDocumentation
 */
import type { LockObserver } from '../index.js';
import { OpenTelemetryObserver, type OpenTelemetryOptions } from './open-telemetry-observer.js';

export type { OpenTelemetryOptions } from './open-telemetry-observer.js';

/**
 * Records spans of locks, and metrics of locks, masters and scheduled jobs: `RedlockModule.forRoot({ masters, observers: [openTelemetry()] })`.
 *
 * By default a resource is reported by its kind, not by its name: see {@link OpenTelemetryOptions.resourceOf}.
 *
 * @throws {RedlockConfigError} for an unknown or invalid option
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): LockObserver {
  return new OpenTelemetryObserver(options);
}
