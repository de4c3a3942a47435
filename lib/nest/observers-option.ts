import type { LoggerService } from '@nestjs/common';
import { RedlockConfigError } from '../core/errors.js';
import type { LockObserver, ObservedService } from '../core/observer.js';
import { hasMethods } from './masters-option.js';

/** @throws {RedlockConfigError} unless the value is a list of observers */
export function observersOf(observers: unknown): readonly LockObserver[] {
  if (observers !== undefined && (!Array.isArray(observers) || !observers.every((each) => hasMethods(each, [])))) {
    throw new RedlockConfigError('observers', observers, 'must be a list of observers');
  }
  return observers ?? [];
}

/** The observers of one service: each observer, or the one that it returns for the service. */
export function started(
  observers: readonly LockObserver[],
  service: ObservedService,
  logger: LoggerService,
): LockObserver[] {
  return observers.map((observer) => {
    try {
      return observer.started?.(service) ?? observer;
    } catch (error) {
      reportTo(logger)(error);
      return observer;
    }
  });
}

/** Logs what an observer throws. */
export function reportTo(logger: LoggerService, observed = 'locks'): (error: unknown) => void {
  return (error) => {
    try {
      logger.error(`an observer of ${observed} threw: ${String(error)}`);
    } catch {
      // Observers are called from timers and sockets, where an error of the logger would end the process.
    }
  };
}
