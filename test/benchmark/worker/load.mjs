import { sharedNow, sleep } from '../measure/figures.mjs';

let keys = 0;

/**
 * Acquires and releases with the given concurrency, for `duration` milliseconds. Every lock has a key of its own, unless
 * the callers share `shared` keys evenly: then each always asks for the same one.
 */
export async function load(contender, { concurrency, shared, duration, ttl }) {
  const failures = new Map();
  let locks = 0;
  const cpu = process.cpuUsage();
  const start = performance.now();
  const end = start + duration;

  async function loop(_, own) {
    while (performance.now() < end) {
      try {
        const key = shared ? `crowd:${process.pid}:${shared}:${own % shared}` : `load:${process.pid}:${keys++}`;
        await contender.cycle(key, ttl);
        locks += 1;
      } catch (error) {
        const why = String(error?.message ?? error).slice(0, 200);
        failures.set(why, (failures.get(why) ?? 0) + 1);
      }
    }
  }

  await Promise.all(Array.from({ length: concurrency }, loop));
  const elapsed = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  return { locks, elapsed, cpu: user + system, failures: Object.fromEntries(failures) };
}

/** Milliseconds of each of `count` locks, or of all in `duration` milliseconds, one after the other, with a key each. */
export async function cycles(contender, { count = Infinity, duration = Infinity, ttl }) {
  const acquire = [];
  const both = [];
  const end = performance.now() + duration;
  for (let i = 0; i < count && performance.now() < end; i++) {
    const key = `cycle:${process.pid}:${keys++}`;
    const start = performance.now();
    const release = await contender.acquire(key, ttl);
    acquire.push(performance.now() - start);
    await release();
    both.push(performance.now() - start);
  }
  return { acquire, both };
}

/** A slow contender does not make it last longer, in milliseconds. */
const LONGEST_WARM_UP = 10_000;

/** Acquires and releases `count` locks with the given number of callers, so that the code is compiled. */
export async function warmUp(contender, { callers, count, ttl }) {
  let left = count;
  const end = performance.now() + LONGEST_WARM_UP;
  async function caller() {
    while (left-- > 0 && performance.now() < end) await contender.cycle(`warm-up:${process.pid}:${keys++}`, ttl);
  }
  await Promise.all(Array.from({ length: callers }, caller));
}

/**
 * Several waiters of this process request the same key repeatedly, from `start` to `end`.
 *
 * @param keys the number of keys, if the waiters share several; each waiter always requests the same one
 */
export async function contend(contender, { key, ttl, section, waiters, start, end, keys = 1 }) {
  const sections = [];
  const failures = [];

  async function waiter(_, own) {
    const wanted = keys === 1 ? key : `${own % keys}:${key}`;
    while (sharedNow() < end) {
      const times = [sharedNow()];
      try {
        const release = await contender.acquire(wanted, ttl);
        times.push(sharedNow());
        await sleep(section);
        times.push(sharedNow());
        sections.push(times);
        const released = release();
        // After the end of the round, the key is freed so that the round can finish. Failures from then on do not
        // count.
        if (sharedNow() < end) await released;
        else released.catch(() => {});
      } catch (error) {
        if (sharedNow() < end) failures.push(String(error?.message ?? error));
        await sleep(1);
      }
    }
  }

  await sleep(start - sharedNow());
  const before = process.cpuUsage();
  await Promise.all(Array.from({ length: waiters }, waiter));
  const { user, system } = process.cpuUsage(before);
  return { sections, failures, waiters, cpu: user + system };
}
