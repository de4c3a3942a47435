import { inRounds, spread } from '../measure/rounds.mjs';
import { latencies } from '../measure/trace.mjs';

/** Locks of each contender before the first round: until then, its code is still being compiled. */
const WARM_UP = 3_000;

/** Measures how long a lock takes on an idle machine, per contender. */
export async function oneByOne({ crew, ttl }, { rounds, count }) {
  const cycles = (contender, length) => crew.run(contender, 'cycles', { count: length, ttl });
  for (const contender of crew.members) await cycles(contender, WARM_UP);
  const measured = await inRounds({ rounds, warmUps: 1 }, crew.members, (contender) => cycles(contender, count));
  const found = {};
  for (const [contender, results] of measured) {
    const of = (name) => {
      const perRound = results.map((times) => latencies(times[name]));
      return { p50: spread(perRound.map(({ p50 }) => p50)), p99: spread(perRound.map(({ p99 }) => p99)) };
    };
    found[contender] = { acquire: of('acquire'), both: of('both') };
  }
  return found;
}
