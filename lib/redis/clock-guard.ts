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
 * Compared with the sample in which the server's clock was furthest behind: many small jumps add up, and a clock that
 * was set back and jumps forward again is noticed. Only samples of the last one or two windows count, since what clocks
 * may gain by being corrected gently hides more and more as time passes.
 */
export class ClockGuard {
  private lowest: Sample | undefined;
  private lowestBefore: Sample | undefined;
  private windowBegan: Instant | undefined;

  /** @param window milliseconds; for as long as a key can live */
  constructor(private readonly window: number) {}

  /**
   * Milliseconds by which the server's clock is ahead of where it should be; `0` if that is within the allowance.
   *
   * @param time wall clock of the server in milliseconds
   * @param allowance how far clocks may be apart, in milliseconds
   */
  jump(sent: Instant, received: Instant, time: number, allowance: number): number {
    const { lowestBefore, lowest } = this;
    const ahead = Math.max(0, aheadOf(lowestBefore, received, time), aheadOf(lowest, received, time));
    if (ahead > allowance) {
      this.windowBegan = undefined;
      this.lowest = undefined;
    }
    this.keep({ sent, time });
    return ahead > allowance ? ahead : 0;
  }

  private keep(sample: Sample): void {
    const { lowest, windowBegan } = this;
    if (!windowBegan || elapsedBetween(windowBegan, sample.sent) > this.window) {
      this.lowestBefore = lowest;
      this.lowest = sample;
      this.windowBegan = sample.sent;
    } else if (!lowest || sample.time - lowest.time < elapsedBetween(lowest.sent, sample.sent)) {
      this.lowest = sample;
    }
  }
}

/** At most so much time has passed: the client's clock was read before the earlier sample and after the later one. */
function aheadOf(earlier: Sample | undefined, received: Instant, time: number): number {
  if (!earlier) return 0;
  const passed = elapsedBetween(earlier.sent, received);
  return time - earlier.time - passed - passed * SLEW;
}
