import { latencies } from '../measure/trace.mjs';
import { inRounds, spread } from '../measure/rounds.mjs';

/** Measures how long a lock takes on an idle machine, per contender. */
export async function oneByOne({ crew, ttl }, { rounds, count }) {
  const measured = await inRounds({ rounds, warmUps: 3 }, crew.members, (contender) =>
    crew.run(contender, 'cycles', { count, ttl }),
  );
  const found = {};
  for (const [contender, results] of measured) {
    const of = (name) => {
      const perRound = results.map((times) => latencies(times[name]));
      const all = latencies(results.flatMap((times) => times[name]));
      return { ...all, p50: spread(perRound.map(({ p50 }) => p50)) };
    };
    found[contender] = { acquire: of('acquire'), both: of('both') };
  }
  return found;
}
