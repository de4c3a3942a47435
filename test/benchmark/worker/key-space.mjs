import { heldInMemory } from '../measure/memory.mjs';

/** Few enough that with the fewest keys nobody waits for anybody. */
const CONCURRENCY = 8;

/** What grows once has grown after so many. */
const WARM_UP = 2_000;

/** Takes every key of a space once and gives it back, for `limit` milliseconds at most; tells the bytes that this left. */
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

/** Microseconds of this process's CPU for a lock with a key at random from a space. */
export async function randomKeys(contender, { space, ttl, duration }) {
  const cpu = process.cpuUsage();
  const end = performance.now() + duration;
  let locks = 0;
  async function loop(_, own) {
    // Each has keys of its own.
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
