let keys = 0;

/** Milliseconds of each of `count` locks, one after the other, each with a key of its own. */
export async function cycles(contender, { count, ttl }) {
  const acquire = [];
  const both = [];
  for (let i = 0; i < count; i++) {
    const key = `cycle:${process.pid}:${keys++}`;
    const start = performance.now();
    // A decorator acquires and releases in one call.
    if (!contender.acquire) await contender.cycle(key, ttl);
    else {
      const release = await contender.acquire(key, ttl);
      acquire.push(performance.now() - start);
      await release();
    }
    both.push(performance.now() - start);
  }
  return { acquire, both };
}
