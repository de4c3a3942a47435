import type { Clock, Timer } from '../clock.js';

/** Milliseconds between two checks. A master that hangs is silent after its third unanswered request. */
const CHECK_INTERVAL = 5_000;

/**
 * Asks the masters from time to time, so that an application that takes no lock also notices a master that hangs or
 * refuses writes, and one that works again. The connection to a master that hangs stays open.
 */
export class IdleCheck {
  private timer: Timer | undefined;

  constructor(
    private readonly clock: Clock,
    /** Sends one request to each master. */
    private readonly ask: () => void,
  ) {}

  /** Checks now and from now on. */
  begin(): void {
    this.ask();
    this.timer = this.clock.schedule(CHECK_INTERVAL, () => this.begin()).unref();
  }

  end(): void {
    this.timer?.cancel();
  }
}
