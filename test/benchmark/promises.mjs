import { figure, times } from './report.mjs';

// Checks: what was promised, what was found, and whether it was kept.

export const atLeast = (promise, ratio, bound) => ({ promise, found: times(ratio), kept: ratio >= bound });
export const atMost = (promise, ratio, bound) => ({ promise, found: times(ratio), kept: ratio <= bound });
export const below = (promise, ratio, bound) => ({ promise, found: times(ratio), kept: ratio < bound });
export const exactly = (promise, value, wanted) => ({ promise, found: figure(value), kept: value === wanted });

/** For a figure with a unit. */
export const noMore = (promise, value, unit, bound) => ({
  promise,
  found: `${figure(value)} ${unit}`,
  kept: value <= bound,
});
