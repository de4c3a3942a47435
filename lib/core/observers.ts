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
 * @param failed told of what one of them throws, which concerns neither the locks nor the others
 */
export function combine(observers: readonly Observer[], failed: (error: unknown) => void): Observer {
  const tell: Tell = (listeners, event, args) => {
    for (const listener of listeners) {
      try {
        const method: unknown = Reflect.get(listener, event);
        if (typeof method === 'function') Reflect.apply(method, listener, args);
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
      within: (work) => listeners.reduce(around, work)(),
    };
  };
}

/** Work as one observer wants it to run. */
export function around<T>(work: () => T, observer: AcquisitionObserver): () => T {
  const within = observer.within?.bind(observer);
  return within ? () => within(work) : work;
}
