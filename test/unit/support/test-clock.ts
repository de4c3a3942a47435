import { ManualClock } from '../../../lib/memory/manual-clock.js';

/** A manual clock with a socket: data that has arrived there is read when the event loop reaches it, not before. */
export class TestClock extends ManualClock {
  /** Reads that wait in the socket. */
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
