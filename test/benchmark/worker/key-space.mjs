import { heldInMemory } from '../measure/memory.mjs';

/** Few enough that no task waits for another, even with the smallest number of keys. */
const CONCURRENCY = 8;

/** Number of keys after which everything that grows only once has grown. */
const WARM_UP = 2_000;

/**
 * Takes and releases every key of a space once, for `limit` milliseconds at most. Returns the bytes that this left in
 * memory.
 */
export async function visitKeys(contender, { space, ttl, limit }) {
  await visit(contender, { name: 'warm-up', space: WARM_UP, ttl, limit });
  const before = heldInMemory();
  const visited = await visit(contender, { name: 'space', space, ttl, limit });
  return { visited, growth: heldInMemory() - before };
}

async function visit(contender, { name, space, ttl, limit }) {
  const end = performance.now() + limit;
  let next = 0;
  async function loop() {
    while (next < space && performance.now() < end) await contender.cycle(`${name}:${process.pid}:${next++}`, ttl);
  }
  await Promise.all(Array.from({ length: 64 }, loop));
  return Math.min(next, space);
}

/** Microseconds of this process's CPU for a lock with a random key from a space. */
export async function randomKeys(contender, { space, ttl, duration }) {
  const cpu = process.cpuUsage();
  const end = performance.now() + duration;
  let locks = 0;
  async function loop(_, own) {
    // Each task has keys of its own.
    const share = Math.floor((space - own - 1) / CONCURRENCY) + 1;
    while (performance.now() < end) {
      await contender.cycle(`space:${process.pid}:${own + CONCURRENCY * Math.floor(Math.random() * share)}`, ttl);
      locks += 1;
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, loop));
  const { user, system } = process.cpuUsage(cpu);
  return (user + system) / locks;
}
