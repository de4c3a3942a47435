import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { asClient } from '../measure/pinning.mjs';
import { inRounds, spread } from '../measure/rounds.mjs';

const SCRIPT = fileURLToPath(new URL('../worker/first-lock.mjs', import.meta.url));
const TTL = 3_000;

/** Milliseconds from the start of a process to its first lock, by steps, per contender. */
export async function firstLock(url, contenders, { rounds }) {
  const measured = await inRounds({ rounds, warmUps: 1 }, contenders, async (contender) => {
    const [file, ...args] = asClient([process.execPath, SCRIPT, contender, url, String(TTL)]);
    const { stdout } = await promisify(execFile)(file, args, { timeout: 30_000 });
    return JSON.parse(stdout);
  });
  const found = {};
  for (const [contender, times] of measured) {
    const of = (name) => spread(times.map((figures) => figures[name]));
    found[contender] = { imported: of('imported'), connected: of('connected'), locked: of('locked') };
  }
  return found;
}
