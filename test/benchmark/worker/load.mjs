let keys = 0;

/** Acquires and releases with the given concurrency, for `duration` milliseconds. Every lock has a key of its own. */
export async function load(contender, { concurrency, duration, ttl }) {
  const failures = new Map();
  let locks = 0;
  const cpu = process.cpuUsage();
  const start = performance.now();
  const end = start + duration;

  async function loop() {
    while (performance.now() < end) {
      try {
        await contender.cycle(`load:${process.pid}:${keys++}`, ttl);
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
