import { sleep } from '../measure/numbers.mjs';

let keys = 0;

/**
 * Milliseconds of each acquire and of each release of `count` locks, with a key each. Every caller takes one lock after
 * the other; the callers begin evenly spread over `within` milliseconds, so that they do not move in step.
 */
export async function locks(contender, { callers, count, within = 0, ttl }) {
  const acquire = [];
  const release = [];
  let left = count;

  async function caller(_, own) {
    if (own > 0 && within > 0) await sleep((own * within) / callers);
    while (left-- > 0) {
      const start = performance.now();
      const letGo = await contender.acquire(`lock:${process.pid}:${keys++}`, ttl);
      const acquired = performance.now();
      await letGo();
      acquire.push(acquired - start);
      release.push(performance.now() - acquired);
    }
  }

  await Promise.all(Array.from({ length: callers }, caller));
  return { acquire, release };
}
