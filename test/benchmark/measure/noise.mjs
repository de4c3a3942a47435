const STEPS = 20_000_000;

/** Milliseconds for a fixed amount of CPU work. Differences between rounds come from the machine. */
export function fixedWork() {
  const start = performance.now();
  let state = 1;
  for (let i = 0; i < STEPS; i++) state = (Math.imul(state, 1_103_515_245) + 12_345) | 0;
  const time = performance.now() - start;
  // Using the result keeps the compiler from removing the work.
  return state === 0 ? NaN : time;
}
