import { inRounds, spread } from '../measure/rounds.mjs';
import { trace } from '../waiting/contention.mjs';
import { Pool } from '../worker/pool.mjs';
import { EXCLUSIVE, PERMIT } from './crowds.mjs';
import { PERMITS } from './limit.mjs';

/** In milliseconds. Long enough that holders overlap. */
const SECTION = 1;
const PROCESSES = 4;
const WAITERS = 16;

/** The peer with permits. Over several masters it keeps a counter on each of them. */
export const PEER = 'redis-semaphore-permits';

const SCENES = [
  { title: PERMIT, contender: PERMIT },
  { title: `ours, locks on ${PERMITS} keys`, contender: EXCLUSIVE, keys: PERMITS },
  { title: PEER, contender: PEER },
];

/**
 * Several processes want the permits of one name. They ask the masters in different orders, which shows how many
 * holders a contender admits.
 */
export async function semaphores({ urls, ttl }, { duration, rounds, withPeer }) {
  const scenes = SCENES.filter(({ contender }) => contender !== PEER || withPeer);
  const crowd = { processes: PROCESSES, waiters: WAITERS, section: SECTION };
  const pool = new Pool(PROCESSES);
  try {
    for (const { contender } of scenes) await pool.run('connect', { contender, urls, settings: { ttl } });
    const measured = await inRounds({ rounds, warmUps: 1 }, scenes, async ({ contender, keys }) => {
      const { trace: found } = await trace({ pool, urls }, contender, { ...crowd, keys }, duration);
      const { sectionRate, medianWait, longestWait, mostAtOnce, failures } = found;
      return { sectionRate, medianWait, longestWait, mostAtOnce, failures };
    });
    await pool.run('close');
    const found = [...measured].map(([{ title }, results]) => [title, summaryOf(results)]);
    return { ...crowd, contenders: Object.fromEntries(found) };
  } finally {
    await pool.end();
  }
}

function summaryOf(rounds) {
  const of = (name) => rounds.map((round) => round[name]);
  return {
    rate: spread(of('sectionRate')),
    medianWait: spread(of('medianWait')),
    longestWait: spread(of('longestWait')),
    mostAtOnce: Math.max(...of('mostAtOnce')),
    failures: of('failures').flat(),
  };
}
