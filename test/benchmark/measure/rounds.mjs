import { median } from './numbers.mjs';

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
