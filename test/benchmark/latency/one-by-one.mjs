import { inRounds, spread } from '../measure/rounds.mjs';
import { latencies } from '../measure/trace.mjs';

/** Measures how long a lock takes on an idle machine, per contender, in the steady state. */
export async function oneByOne({ crew, ttl }, { rounds, count }) {
  const measured = await inRounds({ rounds, warmUps: 1 }, crew.members, (contender) =>
    crew.run(contender, 'cycles', { count, ttl }),
  );
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
