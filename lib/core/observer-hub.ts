import { combine } from './combined-observer.js';
import type { LockObserver } from './observer.js';

/**
 * Observers to which more can be added later. {@link observer} never implements more callbacks than the observers that
 * were added, so a callback that none of them defines still costs nothing.
 */
export class ObserverHub {
  /** Passes each event on to all observers. The same object for as long as the hub lives. */
  readonly observer: LockObserver = {};
  private observers: readonly LockObserver[] = [];

  /** @param failed receives what an observer throws; must not throw */
  constructor(private readonly failed: (error: unknown) => void = () => undefined) {}

  add(...observers: readonly LockObserver[]): this {
    return this.set([...this.observers, ...observers]);
  }

  /**
   * Adds an observer that receives each event before the others, so that it gets the cause before what another observer
   * concludes from it. Acquisitions that began earlier do not reach it.
   */
  precede(observer: LockObserver): this {
    return this.set([observer, ...this.observers]);
  }

  private set(observers: readonly LockObserver[]): this {
    this.observers = observers;
    Object.assign(this.observer, combine(this.observers, this.failed));
    return this;
  }
}
