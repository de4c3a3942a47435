import { median } from '../measure/numbers.mjs';
import { TTL } from './contention.mjs';

const HAND_OVERS = ['release, then acquire', 'release and acquire in one tick', 'token swap'];

/** Measures the effect of a hand-off inside a process in one round: a prototype against raw connections. */
export async function localHandOff({ pool, urls, rounds, duration }) {
  const scenes = [
    { waiters: 8, section: 1 },
    { waiters: 128, section: 1 },
    { waiters: 128, section: 0 },
  ];
  const found = [];
  for (const scene of scenes) {
    const results = Object.fromEntries(HAND_OVERS.map((handOver) => [handOver, []]));
    for (let round = 0; round < rounds; round++) {
      for (const handOver of HAND_OVERS) {
        const task = { urls, key: 'local', ttl: TTL, handOver, duration: duration / 3, ...scene };
        results[handOver].push(...(await pool.run('handLocally', task, 1)));
      }
    }
    const handOvers = Object.entries(results).map(([handOver, runs]) => ({
      handOver,
      perSecond: median(runs.map(({ perSecond }) => perSecond)),
      cpu: median(runs.map(({ cpu }) => cpu)),
    }));
    found.push({ ...scene, handOvers });
  }
  return found;
}
