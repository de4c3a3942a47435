import type { AcquisitionObserver, Observer } from './observer.js';

type Listening = Observer | AcquisitionObserver;

const EVENTS = [
  ...(['lockLost', 'masterAnswered', 'masterSilent', 'masterQuarantined'] as const),
  ...(['masterRefused', 'masterVotesAgain', 'masterAtRisk', 'masterAnswersAgain'] as const),
  ...(['clientClockLagged', 'ttlCut'] as const),
] as const satisfies (keyof Observer)[];

/**
 * One observer that tells all of them. It has no method that none of them has, so that nothing is measured for nobody.
 *
 * @param failed told of what one of them throws, which concerns neither the locks nor the others; must not throw
 */
export function combine(observers: readonly Observer[], failed: (error: unknown) => void): Observer {
  const tell: Tell = (listeners, event, args) => {
    for (const listener of listeners) {
      try {
        const method: unknown = Reflect.get(listener, event);
        const result: unknown = typeof method === 'function' && Reflect.apply(method, listener, args);
        // An observer may be asynchronous, and a rejection that nothing handles ends the process.
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
    Reflect.set(combined, event, (...args: unknown[]) => tell(listeners, event, args));
  }
  if (observers.some((observer) => observer.acquiring !== undefined))
    Reflect.set(combined, 'acquiring', acquiring(observers, tell, failed));
  return combined;
}

type Tell = (listeners: readonly Listening[], event: string, args: readonly unknown[]) => void;

function acquiring(
  observers: readonly Observer[],
  tell: Tell,
  failed: (error: unknown) => void,
): NonNullable<Observer['acquiring']> {
  return (resources, onHeld) => {
    const listeners = observers.flatMap((observer) => {
      try {
        return observer.acquiring?.(resources, onHeld) ?? [];
      } catch (error) {
        failed(error);
        return [];
      }
    });
    return {
      granted: (...args) => tell(listeners, 'granted', args),
      failed: (...args) => tell(listeners, 'failed', args),
      ended: (...args) => tell(listeners, 'ended', args),
      within: (work) => listeners.reduce((inner, listener) => shielded(inner, listener, failed), work)(),
    };
  };
}

/** Like {@link around}; the work runs once and its outcome counts, whatever the observer makes of it. */
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
      // Usually the promise of the work, which is handled where the work's outcome goes.
      if (result instanceof Promise) result.catch(() => undefined);
    } catch (error) {
      if (!outcome) failed(error);
    }
    return once();
  };
}

/** Runs work, and gives its result or its error each time. */
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

/** Work as one observer wants it to run. */
export function around<T>(work: () => T, observer: AcquisitionObserver): () => T {
  const within = observer.within?.bind(observer);
  return within ? () => within(work) : work;
}
