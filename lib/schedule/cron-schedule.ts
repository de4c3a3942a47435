import type { JobSchedule } from './job-policy.js';
import { CronTime } from 'cron';

// In the order of the fields of an expression. A Sunday is both 0 and 7.
const UNITS = [
  [0, 59],
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 7],
] as const;
const PRESETS: Readonly<Record<string, string>> = {
  '@yearly': '0 0 0 1 1 *',
  '@monthly': '0 0 0 1 * *',
  '@weekly': '0 0 0 * * 0',
  '@daily': '0 0 0 * * *',
  '@hourly': '0 0 * * * *',
  '@minutely': '0 * * * * *',
  '@secondly': '* * * * * *',
  '@weekdays': '0 0 0 * * 1-5',
  '@weekends': '0 0 0 * * 0,6',
};
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const SECOND = 1_000;
const DAY = 86_400_000;
// Between two matching days: a 29 February, across a year 2100.
const MAX_DAYS = 9 * 366;

// Times are in milliseconds since the epoch, as if the wall clock showed UTC, and whole seconds.
class CronFields {
  // The minutes or the hours begin with `*`: the expression means a period and not times of day.
  readonly isPeriodic: boolean;
  private readonly seconds: readonly number[];
  private readonly minutes: readonly number[];
  private readonly hours: readonly number[];
  private readonly days: readonly number[];
  private readonly months: readonly number[];
  private readonly weekdays: readonly number[];

  // `expression` is valid, as the package `cron` sees it.
  constructor(expression: string) {
    const words = wordsOf(expression);
    const valuesAt = (index: number): readonly number[] => valuesOf(words[index] ?? '*', UNITS[index] ?? [0, 0]);
    this.isPeriodic = [words[1], words[2]].some((word) => word?.startsWith('*'));
    [this.seconds, this.minutes, this.hours] = [valuesAt(0), valuesAt(1), valuesAt(2)];
    [this.days, this.months] = [valuesAt(3), valuesAt(4)];
    this.weekdays = [...new Set(valuesAt(5).map((day) => day % 7))];
  }

  // At or after a time; `Infinity` if there is none.
  next(from: number): number {
    return this.search(from, 1);
  }

  // At or before a time; `-Infinity` if there is none.
  previous(from: number): number {
    return this.search(from, -1);
  }

  private search(from: number, step: 1 | -1): number {
    const first = Math.floor(from / DAY) * DAY;
    const time = this.matchesDay(first) ? this.timeFrom((from - first) / SECOND, step) : undefined;
    if (time !== undefined) return first + time * SECOND;
    for (let count = 1; count <= MAX_DAYS; count++) {
      const day = first + step * count * DAY;
      if (this.matchesDay(day)) return day + this.edgeOfDay(step) * SECOND;
    }
    return step * Infinity;
  }

  private matchesDay(day: number): boolean {
    const date = new Date(day);
    if (!this.months.includes(date.getUTCMonth() + 1)) return false;
    const isDay = this.days.includes(date.getUTCDate());
    const isWeekday = this.weekdays.includes(date.getUTCDay());
    // If both fields are restricted, one of them is enough.
    return this.days.length === 31 || this.weekdays.length === 7 ? isDay && isWeekday : isDay || isWeekday;
  }

  // `from` is a second of the day.
  private timeFrom(from: number, step: 1 | -1): number | undefined {
    const [hour, minute, second] = [Math.floor(from / 3_600), Math.floor(from / 60) % 60, from % 60];
    if (this.hours.includes(hour)) {
      const matching = this.minutes.includes(minute) ? nearest(this.seconds, second, step) : undefined;
      if (matching !== undefined) return secondsOf(hour, minute, matching);
      const other = nearest(this.minutes, minute + step, step);
      if (other !== undefined) return secondsOf(hour, other, edge(this.seconds, step));
    }
    const other = nearest(this.hours, hour + step, step);
    return other === undefined ? undefined : secondsOf(other, edge(this.minutes, step), edge(this.seconds, step));
  }

  private edgeOfDay(step: 1 | -1): number {
    return secondsOf(edge(this.hours, step), edge(this.minutes, step), edge(this.seconds, step));
  }
}

function wordsOf(expression: string): readonly string[] {
  const text = expression.toLowerCase();
  const numeric = (PRESETS[text] ?? text).replace(/[a-z]{1,3}/g, (name) => {
    const month = MONTHS.indexOf(name);
    return String(month >= 0 ? month + 1 : WEEKDAYS.indexOf(name));
  });
  const words = numeric.trim().split(/\s+/);
  return words.length < UNITS.length ? ['0', ...words] : words;
}

function valuesOf(word: string, [low, high]: readonly [number, number]): readonly number[] {
  const values = new Set<number>();
  for (const part of word.split(',')) {
    const [range = '', step] = part.replace('*', `${low}-${high}`).split('/');
    const [from = low, to = step === undefined ? from : high] = range.split('-').map(Number);
    for (let value = from; value <= to; value += Number(step ?? 1)) values.add(value);
  }
  return [...values].sort((one, other) => one - other);
}

function nearest(values: readonly number[], from: number, step: 1 | -1): number | undefined {
  return step === 1 ? values.find((value) => value >= from) : values.findLast((value) => value <= from);
}

function edge(values: readonly number[], step: 1 | -1): number {
  return values.at(step === 1 ? 0 : -1) ?? 0;
}

function secondsOf(hour: number, minute: number, second: number): number {
  return (hour * 60 + minute) * 60 + second;
}

// Ticks are multiples of the period since the Unix epoch, so that all instances have the same ones.
export class IntervalSchedule implements JobSchedule {
  // In milliseconds.
  constructor(private readonly period: number) {}

  next(after: number): number {
    return (Math.floor(after / this.period) + 1) * this.period;
  }

  last(until: number): number {
    return Math.floor(until / this.period) * this.period;
  }
}

// How far the wall clocks of a time zone are ahead of UTC, in milliseconds. Depends on the moment alone.
type ZoneOffset = (moment: number) => number;

// Such as `UTC+3`, which the package `cron` takes beside the names of time zones.
const FIXED = /^utc(?:([+-]\d{1,2})(?::(\d\d))?)?$/i;

// Throws if there is no such time zone.
function zoneOffsetOf(timeZone: string | undefined): ZoneOffset {
  const fixed = timeZone === undefined ? undefined : FIXED.exec(timeZone);
  if (fixed) {
    const [, hours = '+0', minutes = '0'] = fixed;
    const offset = (Number(hours) * 60 + (hours.startsWith('-') ? -1 : 1) * Number(minutes)) * 60_000;
    return () => offset;
  }
  const format = new Intl.DateTimeFormat('en-US', {
    ...{ timeZone, calendar: 'gregory', numberingSystem: 'latn', hourCycle: 'h23' },
    ...{ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' },
  });
  return (moment) => {
    const fields = format.formatToParts(moment).filter(({ type }) => type !== 'literal');
    const [month = 0, day = 0, year = 0, ...time] = fields.map(({ value }) => Number(value));
    const [hour = 0, minute = 0, second = 0] = time;
    return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(moment / 1_000) * 1_000;
  };
}

// Longer than any change of a wall clock, and shorter than the time between two of them. In milliseconds.
const WINDOW = 26 * 3_600_000;

// The ticks follow from expression and time zone alone: neither the time now nor an earlier answer has an influence.
// `cron` checks the expression; its own search resolves times that occur twice by the time now, and does not find the
// tick before a moment.
// Where clocks are set forward, the times that are skipped have one tick, at the end of the gap. Where they are set
// back, an expression whose minutes or hours begin with `*` ticks throughout, and any other at the first occurrence of
// each time.
export class CronSchedule implements JobSchedule {
  private readonly fields: CronFields;
  private readonly offset: ZoneOffset;

  constructor(expression: string, timeZone?: string) {
    new CronTime(expression, timeZone);
    this.fields = new CronFields(expression);
    this.offset = zoneOffsetOf(timeZone);
    if (this.fields.next(0) === Infinity) throw new Error('no date matches it');
  }

  // Protocol 12.1
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

  // Clocks are set forward at this moment, across a time that matches.
  private isEndOfGap(moment: number): boolean {
    const [before, after] = [this.offset(moment - SECOND), this.offset(moment)];
    return before < after && this.fields.next(moment + before) < moment + after;
  }

  // If the time of this moment counts only once and has occurred before: when times begin to be new again.
  private endOfRepetition(moment: number): number | undefined {
    if (this.fields.isPeriodic) return undefined;
    const change = this.changeBetween(moment - WINDOW, moment);
    if (change === undefined) return undefined;
    const end = change + this.offset(change - SECOND) - this.offset(change);
    return moment < end ? end : undefined;
  }

  // The first moment of the offset that is valid at `to`; `undefined` if it has been valid since `from`.
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
