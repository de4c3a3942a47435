import type { JobObserver } from './job-observer.interface.js';

/** Passes each event on to all observers that the list has at that time. */
export function combineJobObservers(observers: readonly JobObserver[]): Required<JobObserver> {
  // A copy: an observer may remove itself.
  const each = (notify: (observer: JobObserver) => void): void => [...observers].forEach(notify);
  return {
    started: (...args) => each((observer) => observer.started?.(...args)),
    ended: (...args) => each((observer) => observer.ended?.(...args)),
    unfinished: (...args) => each((observer) => observer.unfinished?.(...args)),
    skipped: (...args) => each((observer) => observer.skipped?.(...args)),
    delayed: (...args) => each((observer) => observer.delayed?.(...args)),
  };
}
