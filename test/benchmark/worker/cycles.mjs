let keys = 0;

/** Milliseconds of each of so many locks, taken and given back one after the other, each with a key of its own. */
export async function cycles(contender, { count, ttl }) {
  const times = [];
  for (let i = 0; i < count; i++) {
    const start = performance.now();
    await contender.cycle(`cycle:${process.pid}:${keys++}`, ttl);
    times.push(performance.now() - start);
  }
  return times;
}
