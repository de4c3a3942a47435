import type { JobObserver } from './job-observer.interface.js';

/**
 * Passes each event on to all observers.
 *
 * @param observers asked at each event, because observers come and go
 * @param failed receives what an observer throws; must not throw
 */
export function combineJobObservers(
  observers: () => readonly JobObserver[],
  failed: (error: unknown) => void,
): Required<JobObserver> {
  const each = (notify: (observer: JobObserver) => unknown): void => {
    for (const observer of observers()) {
      try {
        const result = notify(observer);
        // An observer may be asynchronous, and an unhandled rejection ends the process.
        if (result instanceof Promise) result.catch(failed);
      } catch (error) {
        failed(error);
      }
    }
  };
  return {
    started: (...args) => each((observer) => observer.started?.(...args)),
    ended: (...args) => each((observer) => observer.ended?.(...args)),
    unfinished: (...args) => each((observer) => observer.unfinished?.(...args)),
    succeeded: (...args) => each((observer) => observer.succeeded?.(...args)),
    skipped: (...args) => each((observer) => observer.skipped?.(...args)),
    delayed: (...args) => each((observer) => observer.delayed?.(...args)),
  };
}
