import { sleep } from '../measure/numbers.mjs';
import { heldInMemory } from '../measure/memory.mjs';

let keys = 0;

/**
 * More samples than a minute can produce. The array is allocated at the start, so that samples do not add to memory
 * growth.
 */
const MOST = 2 ** 21;
const times = new Float64Array(MOST);

/**
 * Acquires and releases with the given concurrency, for `duration` milliseconds. It returns then even if a lock does
 * not: an attempt that is still in progress counts with the time until then.
 */
export async function strain(contender, { concurrency, duration, ttl, sampled = [] }) {
  let locks = 0;
  const underWay = new Set();
  const failures = new Map();
  const memory = [heldInMemory()];
  const start = performance.now();
  const end = start + duration;
  let over = false;

  async function loop() {
    while (!over && performance.now() < end) {
      const attempt = { began: performance.now() };
      underWay.add(attempt);
      try {
        await contender.cycle(`strain:${process.pid}:${keys++}`, ttl);
        if (!over) times[locks++ % MOST] = performance.now() - attempt.began;
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
  for (const at of [...sampled, duration]) {
    await sleep(start + at - performance.now());
    memory.push(heldInMemory());
  }
  over = true;
  const now = performance.now();
  const all = Array.from(times.subarray(0, Math.min(locks, MOST)));
  for (const { began } of underWay) all.push(now - began);
  return { locks, times: all, elapsed: now - start, memory, failures: Object.fromEntries(failures) };
}
