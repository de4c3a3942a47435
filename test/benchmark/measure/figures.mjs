export function percentile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

export const median = (values) => percentile(values, 0.5);

/** Milliseconds on a clock that all processes of the machine share. */
export const sharedNow = () => Number(process.hrtime.bigint()) / 1e6;

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Lets all contenders measure in turn, round by round. Each round begins with another contender, so that changes of the
 * machine's state affect all alike. The `warmUps` rounds at the beginning do not count.
 */
export async function inRounds({ rounds, warmUps = 0 }, contenders, measure) {
  const found = new Map(contenders.map((contender) => [contender, []]));
  for (let round = -warmUps; round < rounds; round++) {
    for (let i = 0; i < contenders.length; i++) {
      const contender = contenders[(i + round + warmUps) % contenders.length];
      const figures = await measure(contender, round);
      if (round >= 0) found.get(contender).push(figures);
    }
  }
  return found;
}

/** Median, smallest and largest value of one figure, and its value in each round. */
export function spread(rounds) {
  return { median: median(rounds), min: Math.min(...rounds), max: Math.max(...rounds), rounds };
}

export function joinedSpread(spreads) {
  return spread(spreads.flatMap(({ rounds }) => rounds));
}

/** Ratio of one contender's figure to another's: the median of the ratios within each round. */
export function ratioOf(mine, other) {
  return median(mine.rounds.map((value, round) => value / other.rounds[round]));
}

/** The exponent with which a cost grows: the slope of the line through its points, with both axes logarithmic. */
export function slope(points) {
  const logs = points.map((point) => point.map(Math.log));
  const mean = [0, 1].map((axis) => logs.reduce((sum, point) => sum + point[axis], 0) / logs.length);
  const product = (axis) => logs.reduce((sum, point) => sum + (point[0] - mean[0]) * (point[axis] - mean[axis]), 0);
  return product(1) / product(0);
}

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

/** Bytes that this process still uses after a collection: in the heap, and in buffers outside of it. */
export function heldInMemory() {
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
