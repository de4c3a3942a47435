import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The number of runs of the job for each second. */
export async function runsPerSecond(store) {
  const log = await readFile(join(store, 'reports.log'), 'utf8').catch(() => '');
  const runs = new Map();
  for (const second of log.split('\n').filter(Boolean).map(Number.parseFloat)) {
    runs.set(second, (runs.get(second) ?? 0) + 1);
  }
  return runs;
}

/** Sums up the ticks. `from` and `until` (exclusive) are the seconds in which all instances were running. */
export function countTicks(runs, from, until) {
  const expected = Array.from({ length: until - from }, (_, index) => runs.get(from + index) ?? 0);
  return {
    expected: expected.length,
    once: expected.filter((count) => count === 1).length,
    missed: expected.filter((count) => count === 0).length,
    twice: expected.filter((count) => count > 1).length,
    /** Includes the seconds before and after: with locks this must never happen. */
    twiceEver: [...runs.values()].filter((count) => count > 1).length,
  };
}

/** The measurements of the instances: the time to acquire an uncontended lock. */
export async function acquisitions(instances) {
  const stats = instances.map(async ({ url }) => {
    const response = await fetch(`${url}/stats`, { signal: AbortSignal.timeout(5_000) });
    return (await response.json()).acquisitions;
  });
  return (await Promise.all(stats)).flat();
}

/** Percentiles in milliseconds over the samples from one moment to another. */
export function latency(samples, from, until) {
  const chosen = samples.filter(({ at }) => at >= from && at < until);
  const times = chosen.map(({ took }) => took).sort((a, b) => a - b);
  const percentile = (share) => times[Math.ceil(times.length * share) - 1] ?? NaN;
  return {
    count: chosen.length,
    failed: chosen.filter(({ error }) => error).length,
    p50: percentile(0.5),
    p99: percentile(0.99),
  };
}
