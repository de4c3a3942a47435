import { createHook } from 'node:async_hooks';
import { heldInMemory } from '../measure/memory.mjs';
import { sleep } from '../measure/numbers.mjs';

/** Number of locks that are taken or released at a time. */
const CONCURRENCY = 64;
/** Time after which the leftovers of taking the locks are gone, in milliseconds. */
const SETTLED = 300;

const held = [];
let keys = 0;

/** Takes locks until `count` are held, extended or not. Returns the bytes of memory that each new lock occupies. */
export async function hold(contender, { count, ttl, extended }) {
  const take = extended ? contender.hold : contender.acquire;
  const wanted = count - held.length;
  const before = heldInMemory();
  let left = wanted;
  async function loop() {
    while (left-- > 0) held.push(await take(`held:${process.pid}:${keys++}`, ttl));
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, loop));
  await sleep(SETTLED);
  return { bytes: wanted > 0 ? (heldInMemory() - before) / wanted : NaN };
}

/** Does nothing but hold the locks for `duration` milliseconds. Returns the share of a CPU that this takes. */
export async function rest(_, { duration }) {
  const cpu = process.cpuUsage();
  const start = performance.now();
  await sleep(duration);
  const { user, system } = process.cpuUsage(cpu);
  return { share: (user + system) / 1000 / (performance.now() - start) };
}

/**
 * Limit for the release of all locks, in milliseconds, and for each of them if they are many: some libraries try for
 * seconds to release a lock that they have lost.
 */
const GIVE_BACK_WITHIN = { all: 20_000, each: 1 };

/** Releases all locks. Returns how many could not be released properly, or not in time. */
export async function letGo() {
  let failures = 0;
  const end = performance.now() + Math.max(GIVE_BACK_WITHIN.all, GIVE_BACK_WITHIN.each * held.length);
  async function loop() {
    for (let release = held.pop(); release; release = held.pop()) {
      if (performance.now() > end) failures += 1;
      else await Promise.resolve(release()).catch(() => (failures += 1));
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, loop));
  return { failures };
}

/** The number of timers per lock, whether they keep the process alive or not. */
export async function timers(contender, { count, ttl }) {
  const alive = new Set();
  const hook = createHook({
    init: (id, type) => void (type === 'Timeout' && alive.add(id)),
    destroy: (id) => void alive.delete(id),
  }).enable();
  await hold(contender, { count, ttl, extended: true });
  const perLock = alive.size / count;
  await letGo();
  hook.disable();
  return { perLock };
}
