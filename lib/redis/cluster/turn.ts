import type { Clock, Timer } from '../../core/clock.js';

/** Runs what several queues want to do after this turn of the event loop together, so that it takes one write. */
export class Turn implements Pick<Clock, 'afterTurn' | 'schedule'> {
  private callbacks: (() => void)[] = [];

  constructor(private readonly clock: Clock) {}

  afterTurn(callback: () => void): void {
    if (this.callbacks.push(callback) === 1) this.clock.afterTurn(this.run);
  }

  schedule(delay: number, callback: () => void): Timer {
    return this.clock.schedule(delay, callback);
  }

  private readonly run = (): void => {
    const { callbacks } = this;
    this.callbacks = [];
    for (const callback of callbacks) callback();
  };
}
