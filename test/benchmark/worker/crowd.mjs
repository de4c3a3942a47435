/**
 * Acquires and releases with the given number of callers, for `duration` milliseconds. The callers share `keys` keys
 * evenly: each always asks for the same one.
 */
export async function crowd(contender, { keys, callers, duration, ttl }) {
  const failures = [];
  let locks = 0;
  const cpu = process.cpuUsage();
  const start = performance.now();
  const end = start + duration;

  async function caller(_, own) {
    const key = `crowd:${process.pid}:${keys}:${own % keys}`;
    while (performance.now() < end) {
      try {
        await contender.cycle(key, ttl);
        locks += 1;
      } catch (error) {
        failures.push(String(error?.message ?? error).slice(0, 200));
      }
    }
  }

  await Promise.all(Array.from({ length: callers }, caller));
  const elapsed = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  return { locks, elapsed, cpu: user + system, failures };
}
