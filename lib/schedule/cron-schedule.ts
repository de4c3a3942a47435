import { CronTime } from 'cron';
import type { JobSchedule } from '../core/jobs/job-schedule.interface.js';

const SECOND = 1_000;
/** How far clocks are set back: by an hour, and on Lord Howe Island by half of one. In milliseconds. */
const REPEATED = [1_800_000, 3_600_000];
/** The longest time between two ticks that is looked for: a 29 February, across a year 2100. In milliseconds. */
const LONGEST_GAP = 9 * 366 * 86_400_000;

/** The ticks of a cron expression in a time zone, as the package `cron` computes them. */
export class CronSchedule implements JobSchedule {
  private readonly time: CronTime;
  /** The answer to the last question for each direction: a job asks for the same ticks several times. */
  private nextAnswer: readonly [after: number, tick: number] | undefined;
  private lastAnswer: readonly [until: number, tick: number] | undefined;

  /** @throws if the expression or the time zone is invalid, or the expression has no tick */
  constructor(expression: string, timeZone?: string) {
    this.time = new CronTime(expression, timeZone);
    this.next(Date.UTC(2000, 0, 1));
  }

  next(after: number): number {
    if (this.nextAnswer?.[0] === after) return this.nextAnswer[1];
    let tick = this.following(after);
    while (!this.isRegular(tick)) tick = this.following(tick);
    this.nextAnswer = [after, tick];
    return tick;
  }

  last(until: number): number {
    if (this.lastAnswer?.[0] === until) return this.lastAnswer[1];
    let [low, high] = [this.someTickBefore(until), until];
    // Between `low`, which is a tick, and `high` there may be thousands more.
    while (high - low > SECOND) {
      const middle = Math.floor((low + high) / 2);
      const tick = this.next(middle);
      if (tick <= until) low = tick;
      else high = middle;
    }
    for (let tick = this.next(low); tick <= until; tick = this.next(low)) low = tick;
    this.lastAnswer = [until, low];
    return low;
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

  private someTickBefore(until: number): number {
    for (let back = SECOND; back < LONGEST_GAP; back *= 2) {
      const tick = this.next(until - back);
      if (tick <= until) return tick;
    }
    return this.next(until - LONGEST_GAP);
  }
}
