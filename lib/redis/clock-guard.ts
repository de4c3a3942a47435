import { elapsedBetween, type Instant } from '../core/clock.js';

/** Clocks that are corrected gently run this much too fast at most. */
const SLEW = 500e-6;

interface Sample {
  readonly sent: Instant;
  /** Wall clock of the server in milliseconds, read some time between sending and receiving. */
  readonly time: number;
}

/**
 * Notices when the wall clock of a server jumps forward: its keys expire by that clock, so they have expired early.
 *
 * Compared with a sample that is as old as possible, so that many small jumps do not go unnoticed.
 */
export class ClockGuard {
  private reference: Sample | undefined;

  /**
   * Milliseconds by which the server's clock is ahead of where it should be; `0` if that is within the allowance.
   *
   * @param time wall clock of the server in milliseconds
   * @param allowance how far clocks may be apart, in milliseconds
   */
  jump(sent: Instant, received: Instant, time: number, allowance: number): number {
    const reference = this.reference;
    this.reference ??= { sent, time };
    if (!reference) return 0;
    // At most that much time has passed: the client's clock was read before the first sample and after this one.
    const passed = elapsedBetween(reference.sent, received);
    const ahead = time - reference.time - passed - passed * SLEW;
    const ownSteps = Math.abs(received.wall - reference.sent.wall - (received.monotonic - reference.sent.monotonic));
    // A clock of this machine was stepped, or the server's clock back: what follows is compared with the present.
    if (ahead > allowance || ownSteps > allowance || ahead < -passed - allowance) this.reference = { sent, time };
    return ahead > allowance ? ahead : 0;
  }
}
