import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { asClient } from '../measure/pinning.mjs';
import { percentile } from '../measure/numbers.mjs';
import { inRounds, spread } from '../measure/rounds.mjs';

const SCRIPT = fileURLToPath(new URL('../worker/first-lock.mjs', import.meta.url));
const TTL = 3_000;
/** Locks that each process takes, one at a time. */
const LOCKS = 1_000;

/**
 * Per contender, milliseconds from the start of a process to its first lock, by steps; and of its first thousand locks, the
 * client's CPU in microseconds per lock, and the times in milliseconds.
 */
export async function firstLock(url, contenders, { rounds }) {
  const measured = await inRounds({ rounds, warmUps: 1 }, contenders, async (contender) => {
    const [file, ...args] = asClient([process.execPath, SCRIPT, contender, url, String(TTL), String(LOCKS)]);
    const { stdout } = await promisify(execFile)(file, args, { timeout: 30_000 });
    return JSON.parse(stdout);
  });
  const found = {};
  for (const [contender, times] of measured) {
    const of = (name) => spread(times.map((figures) => figures[name]));
    const at = (share) => spread(times.map(({ durations }) => percentile(durations, share)));
    found[contender] = {
      ...{ imported: of('imported'), connected: of('connected'), locked: of('locked'), cpu: of('cpu') },
      ...{ p50: at(0.5), p99: at(0.99) },
    };
  }
  return found;
}
