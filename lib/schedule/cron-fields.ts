/** The units of an expression with their bounds, in the order of its fields. A Sunday is both 0 and 7. */
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
export const SECOND = 1_000;
const DAY = 86_400_000;
/** The longest time between two matching days: a 29 February, across a year 2100. */
const MOST_DAYS = 9 * 366;

/**
 * Which times of a wall clock match a cron expression. Times are in milliseconds since the epoch, as if the wall clock
 * showed UTC, and whole seconds.
 */
export class CronFields {
  /** Whether the minutes or the hours begin with `*`, so that the expression means a period and not times of day. */
  readonly isPeriodic: boolean;
  private readonly seconds: readonly number[];
  private readonly minutes: readonly number[];
  private readonly hours: readonly number[];
  private readonly days: readonly number[];
  private readonly months: readonly number[];
  private readonly weekdays: readonly number[];

  /** @param expression valid, as the package `cron` sees it */
  constructor(expression: string) {
    const words = wordsOf(expression);
    const valuesAt = (index: number): readonly number[] => valuesOf(words[index] ?? '*', UNITS[index] ?? [0, 0]);
    this.isPeriodic = [words[1], words[2]].some((word) => word?.startsWith('*'));
    [this.seconds, this.minutes, this.hours] = [valuesAt(0), valuesAt(1), valuesAt(2)];
    [this.days, this.months] = [valuesAt(3), valuesAt(4)];
    this.weekdays = [...new Set(valuesAt(5).map((day) => day % 7))];
  }

  /** The first match at or after a time; `Infinity` if there is none. */
  next(from: number): number {
    return this.search(from, 1);
  }

  /** The last match at or before a time; `-Infinity` if there is none. */
  previous(from: number): number {
    return this.search(from, -1);
  }

  private search(from: number, step: 1 | -1): number {
    const first = Math.floor(from / DAY) * DAY;
    const time = this.matchesDay(first) ? this.timeFrom((from - first) / SECOND, step) : undefined;
    if (time !== undefined) return first + time * SECOND;
    for (let count = 1; count <= MOST_DAYS; count++) {
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

  /** The match of a day that is nearest to a second of it, in one direction. */
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

/** The values of a field, sorted. */
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
