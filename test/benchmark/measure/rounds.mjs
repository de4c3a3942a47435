import { median } from './numbers.mjs';

/**
 * Lets all contenders measure in turn, round by round, each round beginning with another one, so that what changes on
 * the machine meanwhile concerns all alike. `warmUps` rounds before are not counted.
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

/** Median, smallest and largest of one figure, and what it was in each round. */
export function spread(rounds) {
  return { median: median(rounds), min: Math.min(...rounds), max: Math.max(...rounds), rounds };
}

/** How one contender's figure compares with another's: the median of what it was within each round. */
export function ratioOf(mine, other) {
  return median(mine.rounds.map((value, round) => value / other.rounds[round]));
}
