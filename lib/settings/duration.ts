import { RedlockConfigError } from './config.error.js';

/** A number of milliseconds, or a string such as `'250ms'`, `'10s'`, `'5m'`, `'1h'`. */
export type Duration = number | `${number}${DurationUnit}`;

/** Units of a {@link Duration}. */
export type DurationUnit = 'ms' | 's' | 'm' | 'h';

// In milliseconds: the longest delay of a Node timer, about 24.8 days.
export const MAX_DURATION = 2 ** 31 - 1;

const MILLISECONDS: Readonly<Record<DurationUnit, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
// A program has few durations, and writes them at each call.
const PARSED = new Map<string, number>();
const MAX_PARSED = 100;
const FORMS = "must be a whole number of milliseconds, or a string like '250ms', '10s', '5m' or '1h'";
const TEXT = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/;

// In milliseconds. Throws unless that is a whole number from `min` to `max`.
export function parseDuration(option: string, value: unknown, min: number, max = MAX_DURATION): number {
  const milliseconds = typeof value === 'string' ? parseText(value) : value;
  if (typeof milliseconds !== 'number' || !Number.isInteger(milliseconds)) {
    const isDigits = typeof value === 'string' && /^\d{1,10}$/.test(value);
    throw new RedlockConfigError(option, value, isDigits ? unitOf(option, Number(value)) : FORMS);
  }
  if (milliseconds < min || milliseconds > max) {
    const hint = typeof value === 'number' && value > 0 && value < min ? `: for seconds, write '${value}s'` : '';
    throw new RedlockConfigError(option, value, `must be from ${min} to ${max} ms${hint}`);
  }
  return milliseconds;
}

function parseText(text: string): number {
  let milliseconds = PARSED.get(text);
  if (milliseconds === undefined) {
    milliseconds = millisecondsOf(text);
    if (PARSED.size < MAX_PARSED) PARSED.set(text, milliseconds);
  }
  return milliseconds;
}

function millisecondsOf(text: string): number {
  const match = TEXT.exec(text);
  if (!match) return NaN;
  const [, amount, unit] = match;
  // Rounded to a millionth of a millisecond, because 16.1 * 1000 is not a whole number in floating point.
  return Math.round(Number(amount) * MILLISECONDS[unit as DurationUnit] * 1e6) / 1e6;
}

function unitOf(option: string, amount: number): string {
  const seconds = amount > 0 && amount % 1_000 === 0 ? amount / 1_000 : amount;
  const units = `must have a unit, as in '${amount}ms' or '${seconds}s'`;
  // The command line has no numbers.
  return option.startsWith('--') ? units : `${units}, or be the number ${amount}`;
}
