const STEPS = 20_000_000;

/** Milliseconds for always the same work on the CPU: what differs between rounds is the machine. */
export function fixedWork() {
  const start = performance.now();
  let state = 1;
  for (let i = 0; i < STEPS; i++) state = (Math.imul(state, 1_103_515_245) + 12_345) | 0;
  const time = performance.now() - start;
  // The result is used, so the work is not optimized away.
  return state === 0 ? NaN : time;
}
