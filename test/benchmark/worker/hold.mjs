import { createHook } from 'node:async_hooks';
import { heldInMemory } from '../measure/memory.mjs';
import { sleep } from '../measure/numbers.mjs';

/** Takes and gives back so many at a time. */
const CONCURRENCY = 64;
/** What was left over from taking them has gone after so many milliseconds. */
const SETTLED = 300;

const held = [];
let keys = 0;

/** Takes locks until so many are held, extended or not; tells the bytes that each of the new ones keeps in memory. */
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

/** Does nothing but hold for so many milliseconds; tells the share of a CPU that this takes. */
export async function rest(_, { duration }) {
  const cpu = process.cpuUsage();
  const start = performance.now();
  await sleep(duration);
  const { user, system } = process.cpuUsage(cpu);
  return { share: (user + system) / 1000 / (performance.now() - start) };
}

/** Some libraries try for seconds to give back a lock that they have lost. */
const GIVE_BACK_WITHIN = 20_000;

/** Gives all back; tells how many could not be given back properly, or not in time. */
export async function letGo() {
  let failures = 0;
  const end = performance.now() + GIVE_BACK_WITHIN;
  async function loop() {
    for (let release = held.pop(); release; release = held.pop()) {
      if (performance.now() > end) failures += 1;
      else await Promise.resolve(release()).catch(() => (failures += 1));
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, loop));
  return { failures };
}

/** How many timers there are for each of so many locks, whether they keep the process alive or not. */
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
