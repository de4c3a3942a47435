import { percentile } from '../measure/numbers.mjs';
import { inRounds, spread } from '../measure/rounds.mjs';

/** Times of acquire and of release, per contender. Only p99.9 is of all rounds together: a round has too few for it. */
export async function latencies({ crew, ttl }, { rounds, ...task }) {
  const measured = await inRounds({ rounds, warmUps: 1 }, crew.members, (member) =>
    crew.run(member, 'locks', { ...task, ttl }),
  );
  const found = {};
  for (const [member, results] of measured) {
    const of = (step) => summaryOf(results.map((times) => times[step]));
    found[member] = { acquire: of('acquire'), release: of('release') };
  }
  return found;
}

function summaryOf(rounds) {
  const all = rounds.flat();
  return {
    p50: spread(rounds.map((times) => percentile(times, 0.5))),
    p99: spread(rounds.map((times) => percentile(times, 0.99))),
    p999: percentile(all, 0.999),
    samples: all.length,
  };
}
