import { inRounds, spread } from '../measure/rounds.mjs';
import { latencies } from '../measure/trace.mjs';
import { trace } from './contention.mjs';

/** One caller more than waiters: the holder, which asks for the key again as soon as it has released it. */
const CROWDS = [
  { waiting: 1, processes: 2, waiters: 1 },
  { waiting: 8, processes: 3, waiters: 3 },
  { waiting: 128, processes: 3, waiters: 43 },
];
/** Duration of the work under the lock, in milliseconds. */
const SECTION = 1;
/** Without `redlock5` at its defaults, whose holder nearly always takes the key again before a waiter asks. */
const CONTENDERS = ['ours', 'redlock5-10ms'];

/**
 * Measures the time from the call of release to the work of the next holder, by the number of callers that wait. Times
 * to a waiter of another process also count apart: only they need the network.
 */
export async function handOffsByCrowd(bench) {
  const found = [];
  for (const { waiting, ...crowd } of CROWDS) {
    const measured = await inRounds({ rounds: bench.rounds, warmUps: 1 }, CONTENDERS, async (contender) => {
      const { trace: seen } = await trace(bench, contender, { ...crowd, section: SECTION }, bench.duration);
      return { all: latencies(seen.handOffs), away: latencies(seen.handOffsAway) };
    });
    found.push({ waiting, contenders: [...measured].map(([name, rounds]) => ({ name, ...summaryOf(rounds) })) });
  }
  return found;
}

function summaryOf(rounds) {
  const of = (which) => ({
    p50: spread(rounds.map((round) => round[which].p50)),
    p99: spread(rounds.map((round) => round[which].p99)),
    samples: rounds.reduce((sum, round) => sum + round[which].samples, 0),
  });
  return { all: of('all'), away: of('away') };
}
