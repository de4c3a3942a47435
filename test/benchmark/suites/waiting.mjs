import { before } from '../cost/contenders.mjs';
import { RedisServer } from '../../../scripts/redis-servers.mjs';
import { checksOf } from '../waiting/checks.mjs';
import { contention, crowdInOneProcess } from '../waiting/contention.mjs';
import { handOffsByCrowd } from '../waiting/hand-offs.mjs';
import { handOffLatency } from '../waiting/latency.mjs';
import { localHandOff } from '../waiting/local-hand-off.mjs';
import { LONGEST_TTL, uncontended } from '../waiting/uncontended.mjs';
import { Pool } from '../worker/pool.mjs';
import { printWaiting } from '../waiting/print.mjs';

const CONTENDERS = ['ours', 'redlock5', 'redlock5-10ms', 'redlock4', ...before];
const PROCESSES = 8;

const LENGTHS = {
  usual: { rounds: 3, duration: 1_800, samples: 400 },
  quick: { rounds: 1, duration: 700, samples: 120 },
};

/** Measures the hand-over of one key between waiting processes, and its cost. */
export async function run({ quick, masters = quick ? [1, 5] : [1, 3, 5] }) {
  const lengths = quick ? LENGTHS.quick : LENGTHS.usual;
  const figures = [];
  const pool = new Pool(PROCESSES);
  for (const count of masters) {
    const servers = await Promise.all(Array.from({ length: count }, () => RedisServer.start()));
    const urls = servers.map(({ url }) => url);
    for (const contender of CONTENDERS) await pool.run('connect', { contender, urls, settings: { ttl: LONGEST_TTL } });
    try {
      const bench = { pool, urls, ...lengths };
      const found = {
        masters: count,
        uncontended: await uncontended(bench, CONTENDERS),
        contention: [
          await contention(bench, { processes: 8, waiters: 1 }),
          await contention(bench, { processes: 4, waiters: 2 }),
          await contention(bench, { processes: 4, waiters: 8 }),
        ],
        crowd: await crowdInOneProcess(bench, 128),
        handOffs: await handOffsByCrowd(bench),
        latency: await handOffLatency(bench),
        localHandOff: count === Math.max(...masters) ? await localHandOff(bench) : undefined,
      };
      printWaiting(found);
      figures.push(found);
    } finally {
      await pool.run('close');
      await Promise.all(servers.map((server) => server.stop()));
    }
  }
  await pool.end();
  return { figures, checks: figures.flatMap(checksOf) };
}
