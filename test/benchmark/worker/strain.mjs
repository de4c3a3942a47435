import { sleep } from '../measure/figures.mjs';

let keys = 0;

/**
 * Acquires and releases with the given concurrency, for `duration` milliseconds. It returns then even if a lock does
 * not: an attempt that is still in progress counts with the time until then.
 */
export async function strain(contender, { concurrency, duration, ttl }) {
  const times = [];
  const underWay = new Set();
  const failures = new Map();
  const start = performance.now();
  const end = start + duration;
  let over = false;

  async function loop() {
    while (!over && performance.now() < end) {
      const attempt = { began: performance.now() };
      underWay.add(attempt);
      try {
        await contender.cycle(`strain:${process.pid}:${keys++}`, ttl);
        if (!over) times.push(performance.now() - attempt.began);
      } catch (error) {
        const why = String(error?.message ?? error).slice(0, 200);
        failures.set(why, (failures.get(why) ?? 0) + 1);
        // An immediate failure must not keep everything else from running.
        await sleep(1);
      }
      underWay.delete(attempt);
    }
  }

  for (let i = 0; i < concurrency; i++) void loop();
  await sleep(duration);
  over = true;
  const now = performance.now();
  for (const { began } of underWay) times.push(now - began);
  return { locks: times.length - underWay.size, times, elapsed: now - start, failures: Object.fromEntries(failures) };
}
