import { CronTime } from 'cron';
import type { JobSchedule } from '../core/jobs/job-schedule.interface.js';
import { SECOND, CronFields } from './cron-fields.js';
import { type ZoneOffset, zoneOffsetOf } from './zone-offset.js';

/** Longer than any change of a wall clock, and shorter than the time between two of them. In milliseconds. */
const WINDOW = 26 * 3_600_000;

/**
 * The ticks of a cron expression in a time zone. They follow from these two alone: neither the time now nor an earlier
 * answer has an influence. `cron` checks the expression; its own search resolves times that occur twice by the time now,
 * and does not find the tick before a moment.
 *
 * Where clocks are set forward, the times that are skipped have one tick, at the end of the gap. Where they are set back,
 * an expression whose minutes or hours begin with `*` ticks throughout, and any other at the first occurrence of each time.
 */
export class CronSchedule implements JobSchedule {
  private readonly fields: CronFields;
  private readonly offset: ZoneOffset;

  /** @throws if the expression or the time zone is invalid, or the expression has no tick */
  constructor(expression: string, timeZone?: string) {
    new CronTime(expression, timeZone);
    this.fields = new CronFields(expression);
    this.offset = zoneOffsetOf(timeZone);
    if (this.fields.next(0) === Infinity) throw new Error('no date matches it');
  }

  // Protocol 14.1
  next(after: number): number {
    for (let from = Math.floor(after / SECOND) * SECOND + SECOND; ;) {
      if (this.isEndOfGap(from)) return from;
      const change = this.changeBetween(from, from + WINDOW);
      const offset = this.offset(from);
      const tick = this.fields.next(from + offset) - offset;
      if (tick < (change ?? from + WINDOW)) {
        const allowed = this.endOfRepetition(tick);
        if (allowed === undefined) return tick;
        from = allowed;
      } else {
        from = change ?? Math.max(from + WINDOW, tick - WINDOW);
      }
    }
  }

  last(until: number): number {
    for (let to = Math.floor(until / SECOND) * SECOND; ;) {
      const change = this.changeBetween(to - WINDOW, to);
      const offset = this.offset(to);
      const tick = this.fields.previous(to + offset) - offset;
      if (tick >= (change ?? to - WINDOW)) {
        if (this.endOfRepetition(tick) === undefined) return tick;
        // All times from the change to this one have occurred before.
        to = (this.changeBetween(tick - WINDOW, tick) ?? tick) - SECOND;
      } else if (change === undefined) {
        to = Math.min(to - WINDOW, tick + WINDOW);
      } else {
        if (this.isEndOfGap(change)) return change;
        to = change - SECOND;
      }
    }
  }

  /** Whether clocks are set forward at this moment, across a time that matches. */
  private isEndOfGap(moment: number): boolean {
    const [before, after] = [this.offset(moment - SECOND), this.offset(moment)];
    return before < after && this.fields.next(moment + before) < moment + after;
  }

  /** If the time of this moment counts only once and has occurred before: when times begin to be new again. */
  private endOfRepetition(moment: number): number | undefined {
    if (this.fields.isPeriodic) return undefined;
    const change = this.changeBetween(moment - WINDOW, moment);
    if (change === undefined) return undefined;
    const end = change + this.offset(change - SECOND) - this.offset(change);
    return moment < end ? end : undefined;
  }

  /** The first moment of the offset that is valid at `to`; `undefined` if it has been valid since `from`. */
  private changeBetween(from: number, to: number): number | undefined {
    const offset = this.offset(to);
    if (this.offset(from) === offset) return undefined;
    let [before, after] = [from / SECOND, to / SECOND];
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2);
      if (this.offset(middle * SECOND) === offset) after = middle;
      else before = middle;
    }
    return after * SECOND;
  }
}
