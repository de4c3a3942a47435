let keys = 0;

/** Acquires and releases `count` locks with the given number of callers, so that the code is compiled. */
export async function warmUp(contender, { callers, count, ttl }) {
  let left = count;
  async function caller() {
    while (left-- > 0) await contender.cycle(`warm-up:${process.pid}:${keys++}`, ttl);
  }
  await Promise.all(Array.from({ length: callers }, caller));
}
