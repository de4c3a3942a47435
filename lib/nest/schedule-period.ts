import 'reflect-metadata';

/** The units of the three finest fields of a cron expression: how many there are, and the milliseconds of one. */
const FIELDS = [
  { size: 60, unit: 1_000 },
  { size: 60, unit: 60_000 },
  { size: 24, unit: 3_600_000 },
];
const DAY = 86_400_000;
const PART = /^(?:\*|(\d+)(?:-(\d+))?)(?:\/(\d+))?$/;

/**
 * The shortest time in milliseconds between two ticks of a method under `@Cron` or `@Interval`; `undefined` if the method
 * has neither, or a schedule of another kind.
 */
export function shortestPeriodOf(method: object): number | undefined {
  const interval = Reflect.getMetadata('SCHEDULE_INTERVAL_OPTIONS', method) as { timeout?: unknown } | undefined;
  if (typeof interval?.timeout === 'number') return interval.timeout;
  const cron = Reflect.getMetadata('SCHEDULE_CRON_OPTIONS', method) as { cronTime?: unknown } | undefined;
  return typeof cron?.cronTime === 'string' ? shortestPeriod(cron.cronTime) : undefined;
}

/** The shortest period of a cron expression in milliseconds: that of its finest field with several values. */
export function shortestPeriod(expression: string): number | undefined {
  const words = expression.trim().split(/\s+/);
  if (words.length !== 5 && words.length !== 6) return undefined;
  const fields = words.length === 5 ? ['0', ...words] : words;
  for (const [index, { size, unit }] of FIELDS.entries()) {
    const values = valuesOf(fields[index] ?? '', size);
    if (!values) return undefined;
    if (values.length > 1) return smallestGap(values, size) * unit;
  }
  return DAY;
}

/** The values of one field, sorted; `undefined` if it is not understood. */
function valuesOf(field: string, size: number): number[] | undefined {
  const values = new Set<number>();
  for (const part of field.split(',')) {
    const match = PART.exec(part);
    if (!match) return undefined;
    const [, from = '0', to, step] = match;
    const isAll = match[1] === undefined || (step !== undefined && to === undefined);
    const last = to === undefined ? (isAll ? size - 1 : Number(from)) : Number(to);
    const by = Math.max(1, Number(step ?? 1));
    for (let value = Number(from); value <= Math.min(last, size - 1); value += by) values.add(value);
  }
  return values.size === 0 ? undefined : [...values].sort((a, b) => a - b);
}

/** The smallest difference between two values that follow each other, across the end of the unit, too. */
function smallestGap(values: readonly number[], size: number): number {
  return Math.min(...values.map((value, index) => (values[index + 1] ?? (values[0] ?? 0) + size) - value));
}
