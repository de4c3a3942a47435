import { figure, times } from './report.mjs';

// Checks: the promise, the result, and whether the result keeps the promise.

export const atLeast = (promise, ratio, bound) => ({ promise, found: times(ratio), kept: ratio >= bound });
export const atMost = (promise, ratio, bound) => ({ promise, found: times(ratio), kept: ratio <= bound });
export const below = (promise, ratio, bound) => ({ promise, found: times(ratio), kept: ratio < bound });
export const exactly = (promise, value, wanted) => ({ promise, found: figure(value), kept: value === wanted });

/** A check of a figure with a unit. */
export const noMore = (promise, value, unit, bound) => ({
  promise,
  found: `${figure(value)} ${unit}`,
  kept: value <= bound,
});
