import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** How often the job ran for each second. */
export async function runsPerSecond(store) {
  const log = await readFile(join(store, 'reports.log'), 'utf8').catch(() => '');
  const runs = new Map();
  for (const second of log.split('\n').filter(Boolean).map(Number.parseFloat)) {
    runs.set(second, (runs.get(second) ?? 0) + 1);
  }
  return runs;
}

/** Sums the ticks up. `from` and `until` (exclusive) are the seconds in which all instances were there to run them. */
export function countTicks(runs, from, until) {
  const expected = Array.from({ length: until - from }, (_, index) => runs.get(from + index) ?? 0);
  return {
    expected: expected.length,
    once: expected.filter((count) => count === 1).length,
    missed: expected.filter((count) => count === 0).length,
    twice: expected.filter((count) => count > 1).length,
    /** Before and after, too: with locks it must never happen. */
    twiceEver: [...runs.values()].filter((count) => count > 1).length,
  };
}

/** What the instances measured: how long a lock took that nobody else wanted. */
export async function acquisitions(instances) {
  const stats = instances.map(async ({ url }) => {
    const response = await fetch(`${url}/stats`, { signal: AbortSignal.timeout(5_000) });
    return (await response.json()).acquisitions;
  });
  return (await Promise.all(stats)).flat();
}

/** Percentiles in milliseconds over what was measured from one moment to another. */
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
