import { ManualClock } from '../../../lib/memory/manual-clock.js';

/** A manual clock with a socket: what has arrived there is read when the event loop gets to it, not before. */
export class TestClock extends ManualClock {
  /** What waits in the socket. */
  readonly arrived: (() => void)[] = [];

  /** Milliseconds since the clock was made. */
  get now(): number {
    return this.read().monotonic;
  }

  override afterInput(callback: () => void): void {
    super.afterInput(() => {
      for (const read of this.arrived.splice(0)) read();
      callback();
    });
  }
}
