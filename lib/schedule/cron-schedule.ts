import { CronTime } from 'cron';
import type { JobSchedule } from '../core/jobs/job-schedule.interface.js';

const SECOND = 1_000;
const HALF_AN_HOUR = 1_800_000;
/** How far clocks are set back: by an hour, and on Lord Howe Island by half of one. In milliseconds. */
const REPEATED = [HALF_AN_HOUR, 2 * HALF_AN_HOUR];
/** The longest time between two ticks that is looked for: a 29 February, across a year 2100. In milliseconds. */
const LONGEST_GAP = 9 * 366 * 86_400_000;

/** Number of ticks that are remembered. */
const MOST_GAPS = 16;

/** The ticks of a cron expression in a time zone, as the package `cron` computes them. */
export class CronSchedule implements JobSchedule {
  private readonly time: CronTime;
  /** Ticks and their successors. The search for one takes milliseconds, and a job asks for the same ones several times. */
  private readonly gaps: { readonly from: number; readonly to: number }[] = [];

  /** @throws if the expression or the time zone is invalid, or the expression has no tick */
  constructor(expression: string, timeZone?: string) {
    this.time = new CronTime(expression, timeZone);
    this.next(Date.UTC(2000, 0, 1));
  }

  next(after: number): number {
    const known = this.gapAt(after);
    if (known) return known.to;
    let from = after;
    let tick = this.following(from);
    while (tick <= after || !this.isRegular(tick)) {
      // Where clocks are set back, `cron` may answer with a tick before the moment that it is asked about.
      from = tick <= after ? from + HALF_AN_HOUR : tick;
      tick = this.following(from);
    }
    if (this.gaps.some(({ to }) => to === after)) this.remember(after, tick);
    return tick;
  }

  last(until: number): number {
    const known = this.gapAt(until);
    if (known) return known.from;
    let low = this.tickBefore(until);
    let successor = this.next(low);
    let high = until;
    // Between `low`, which is a tick, and `high` there may be thousands more.
    while (successor <= until && high - low > SECOND) {
      const middle = Math.floor((low + high) / 2);
      const tick = this.next(middle);
      if (tick <= until) low = tick;
      else high = middle;
    }
    for (successor = this.next(low); successor <= until; successor = this.next(low)) low = successor;
    this.remember(low, successor);
    return low;
  }

  private gapAt(moment: number): { readonly from: number; readonly to: number } | undefined {
    return this.gaps.find(({ from, to }) => from <= moment && moment < to);
  }

  private remember(from: number, to: number): void {
    if (this.gaps.some((gap) => gap.from === from)) return;
    this.gaps.push({ from, to });
    if (this.gaps.length > MOST_GAPS) this.gaps.shift();
  }

  private following(after: number): number {
    return this.time.getNextDateFrom(new Date(after), this.time.timeZone).toMillis();
  }

  /**
   * Whether the tick is also found from an earlier start. When clocks are set back, `cron` gives a daily job in the
   * repeated hour one tick, and a second one if it is asked within that hour: only an instance that started then would
   * have it.
   */
  private isRegular(tick: number): boolean {
    return REPEATED.every((time) => this.following(tick - time) <= tick);
  }

  /** Some tick before a moment: usually one that is known, a short time ago. */
  private tickBefore(until: number): number {
    const known = this.gaps.map(({ to }) => to).filter((tick) => tick <= until);
    if (known.length > 0) return Math.max(...known);
    for (let back = SECOND; back < LONGEST_GAP; back *= 2) {
      const tick = this.next(until - back);
      if (tick <= until) return tick;
    }
    return this.next(until - LONGEST_GAP);
  }
}
