import { createHook } from 'node:async_hooks';
import { heldInMemory, sleep } from '../measure/figures.mjs';

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

/** Few enough that no task waits for another, even with the smallest number of keys. */
const FEW = 8;

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
  await Promise.all(Array.from({ length: CONCURRENCY }, loop));
  return Math.min(next, space);
}

/** Microseconds of this process's CPU for a lock with a random key from a space. */
export async function randomKeys(contender, { space, ttl, duration }) {
  const cpu = process.cpuUsage();
  const end = performance.now() + duration;
  let locks = 0;
  async function loop(_, own) {
    // Each task has keys of its own.
    const share = Math.floor((space - own - 1) / FEW) + 1;
    while (performance.now() < end) {
      await contender.cycle(`space:${process.pid}:${own + FEW * Math.floor(Math.random() * share)}`, ttl);
      locks += 1;
    }
  }
  await Promise.all(Array.from({ length: FEW }, loop));
  const { user, system } = process.cpuUsage(cpu);
  return (user + system) / locks;
}

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
