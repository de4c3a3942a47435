import type { Clock, Instant } from './clock.js';

/**
 * Gradual corrections move the wall clock by less than this within a second, in milliseconds. They count as time, like
 * every lead of the wall clock.
 */
const NOTICEABLE = 10;
/** Less than {@link NOTICEABLE} in this time is a gradual correction, in milliseconds. */
const CORRECTED_IN = 1_000;

interface WallClockWatchOptions {
  readonly clock: Clock;
  /**
   * The wall clock has moved this many milliseconds further than the monotonic one. It was set forward, or time has passed
   * that the monotonic clock has missed: no clock of this process can show which.
   */
  readonly leads: (milliseconds: number) => void;
  /** The wall clock was set back by this many milliseconds. */
  readonly setBack: (milliseconds: number) => void;
}

/** Compares the two clocks of this process, from one reading to the next. */
export class WallClockWatch {
  /** How far the wall clock was ahead when both last agreed; `undefined` before the first reading. */
  private ahead: number | undefined;
  /** When that was, by the monotonic clock. */
  private agreedAt = 0;

  constructor(private readonly options: WallClockWatchOptions) {}

  /** Whatever happened until the next reading is of no interest. */
  restart(): void {
    this.ahead = undefined;
  }

  /** Takes a reading of the clocks. */
  check(now: Instant): void {
    const lead = leadOf(now, this.ahead);
    if (this.ahead === undefined || (Math.abs(lead) <= NOTICEABLE && now.monotonic - this.agreedAt > CORRECTED_IN)) {
      this.agreeOn(now);
    } else if (lead > NOTICEABLE) this.confirmLead(lead);
    else if (lead < -NOTICEABLE) {
      this.agreeOn(now);
      this.options.setBack(-lead);
    }
  }

  /** A process that is interrupted between its two clocks reads a lead, too, but not twice. */
  private confirmLead(first: number): void {
    const { clock, leads } = this.options;
    const now = clock.read();
    const lead = Math.min(first, leadOf(now, this.ahead));
    if (lead <= NOTICEABLE) return;
    this.agreeOn(now);
    leads(lead);
  }

  private agreeOn(now: Instant): void {
    this.ahead = leadOf(now, 0);
    this.agreedAt = now.monotonic;
  }
}

/** Whether the wall clock moved further than the monotonic one between two readings. */
export function hasLead(from: Instant, to: Instant): boolean {
  return leadOf(to, leadOf(from, 0)) > NOTICEABLE;
}

/** The same moment by the monotonic clock, and another one by the wall clock. */
export function shiftWall({ monotonic, wall }: Instant, milliseconds: number): Instant {
  return { monotonic, wall: wall + milliseconds };
}

function leadOf({ monotonic, wall }: Instant, ahead = 0): number {
  return wall - monotonic - ahead;
}
