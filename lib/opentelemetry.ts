/**
 * Spans and metrics through `@opentelemetry/api`, which is an optional peer of this package.
 *
 * @packageDocumentation
 */
import type { Observer } from './core/observer.js';
import { OpenTelemetryObserver, type OpenTelemetryOptions } from './telemetry/open-telemetry-observer.js';

export type { OpenTelemetryOptions } from './telemetry/open-telemetry-observer.js';

/**
 * Spans and metrics of locks and masters, for `RedlockModule.forRoot({ masters, observers: [openTelemetry()] })`.
 *
 * No resource is named, only its kind: see {@link OpenTelemetryOptions.resourceOf}.
 *
 * @throws {RedlockConfigError} for an option that it does not know or cannot use
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Observer {
  return new OpenTelemetryObserver(options);
}
