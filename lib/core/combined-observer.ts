import { combineJobObservers } from './jobs/combined-job-observer.js';
import type { AcquisitionObserver, LockObserver } from './observer.js';

type Listening = LockObserver | AcquisitionObserver;

const EVENTS = [
  ...(['stopped', 'firstStatus', 'lockInDanger', 'skipped'] as const),
  ...(['lockLost', 'masterAnswered', 'masterSilent', 'masterQuarantined'] as const),
  ...(['masterRefused', 'masterVotesAgain', 'masterAtRisk', 'masterRiskEnded', 'masterAnswersAgain'] as const),
  ...(['masterLost', 'masterFound', 'quorumLost', 'quorumRestored', 'clientClockLagged', 'ttlCut'] as const),
] as const satisfies (keyof LockObserver)[];

/**
 * Combines several observers into one. It implements only the callbacks that at least one of them defines, so
 * unobserved events cost nothing.
 *
 * @param failed receives what an observer throws, which affects neither the locks nor the others; must not throw
 */
export function combine(observers: readonly LockObserver[], failed: (error: unknown) => void): LockObserver {
  const notify: Notify = (listeners, event, args) => {
    for (const listener of listeners) {
      try {
        const method: unknown = Reflect.get(listener, event);
        const result: unknown = typeof method === 'function' && Reflect.apply(method, listener, args);
        // An observer may be asynchronous, and an unhandled rejection ends the process.
        if (result instanceof Promise) result.catch(failed);
      } catch (error) {
        failed(error);
      }
    }
  };
  const combined = {};
  for (const event of EVENTS) {
    const listeners = observers.filter((observer) => observer[event] !== undefined);
    if (listeners.length === 0) continue;
    Reflect.set(combined, event, (...args: unknown[]) => notify(listeners, event, args));
  }
  if (observers.some((observer) => observer.acquiring !== undefined))
    Reflect.set(combined, 'acquiring', acquiring(observers, notify, failed));
  const jobs = observers.flatMap((observer) => observer.jobs ?? []);
  if (jobs.length > 0)
    Reflect.set(
      combined,
      'jobs',
      combineJobObservers(() => jobs, failed),
    );
  return combined;
}

type Notify = (listeners: readonly Listening[], event: string, args: readonly unknown[]) => void;

function acquiring(
  observers: readonly LockObserver[],
  notify: Notify,
  failed: (error: unknown) => void,
): NonNullable<LockObserver['acquiring']> {
  return (resources, onHeld, kind) => {
    const listeners = observers.flatMap((observer) => {
      try {
        return observer.acquiring?.(resources, onHeld, kind) ?? [];
      } catch (error) {
        failed(error);
        return [];
      }
    });
    return {
      granted: (...args) => notify(listeners, 'granted', args),
      failed: (...args) => notify(listeners, 'failed', args),
      ended: (...args) => notify(listeners, 'ended', args),
      within: (work) => listeners.reduce((inner, listener) => shielded(inner, listener, failed), work)(),
    };
  };
}

/** Like {@link around}, but the work runs exactly once and its outcome counts, whatever the observer does. */
function shielded<T>(work: () => T, observer: AcquisitionObserver, failed: (error: unknown) => void): () => T {
  if (!observer.within) return work;
  return () => {
    let outcome: (() => T) | undefined;
    const once = (): T => {
      outcome ??= settled(work);
      return outcome();
    };
    try {
      const result: unknown = around(once, observer)();
      // Usually the promise of the work itself, which is handled where the work's outcome goes.
      if (result instanceof Promise) result.catch(() => undefined);
    } catch (error) {
      if (!outcome) failed(error);
    }
    return once();
  };
}

/** Runs work once. Each call of the returned function yields its result or throws its error. */
function settled<T>(work: () => T): () => T {
  try {
    const result = work();
    return () => result;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

/** Wraps work so that it runs inside the `within` hook of one observer, if there is one. */
export function around<T>(work: () => T, observer: AcquisitionObserver): () => T {
  const within = observer.within?.bind(observer);
  return within ? () => within(work) : work;
}
