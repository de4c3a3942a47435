// Puts load on many keys and measures what it leaves in memory. Prints one line of JSON, and must then exit by itself.
import { setImmediate } from 'node:timers/promises';
import { redisMasters } from '../../lib/redis/master-source.js';
import { CountingMaster } from '../support/counting-master.js';
import { contextOf } from '../support/context.js';
import { Contender } from '../support/redlocks.js';

interface Task {
  readonly urls: readonly string[];
  readonly keys: number;
  /** Number of locks to acquire and release. Give this or `milliseconds`. */
  readonly cycles?: number;
  /** Duration of the load. */
  readonly milliseconds?: number;
  /** Process id of a server that hangs from the start of the load on. */
  readonly hang?: number;
}

export interface SoakReport {
  readonly cycles: number;
  /** Bytes after a garbage collection, when a fifth of the load is done and a silence is noticed, and at the end. */
  readonly heap: readonly [number, number];
  readonly handles: readonly [number, number];
  /** Requests without an answer, at the same two moments. */
  readonly pending: readonly [number, number];
}

const WORKERS = 50;

const { urls, keys, cycles = Infinity, milliseconds = Infinity, hang } = JSON.parse(process.argv[2] ?? '') as Task;
const masters = redisMasters('masters', urls, contextOf()).map((master) => new CountingMaster(master));
const contender = new Contender(masters);
await contender.redlock.masters.connect(10_000);
if (hang !== undefined) process.kill(hang, 'SIGSTOP');

const start = performance.now();
const share = (): number => Math.max(done / cycles, (performance.now() - start) / milliseconds);
let done = 0;

await load(() => share() < 0.2 || (share() < 0.9 && !isSilenceNoticed()));
const before = await measure();
await load(() => share() < 1);
const after = await measure();

const report: SoakReport = {
  cycles: done,
  heap: [before.heap, after.heap],
  handles: [before.handles, after.handles],
  pending: [before.pending, after.pending],
};
process.stdout.write(`${JSON.stringify(report)}\n`);
await contender.close();

// Until then, the requests to a master that hangs pile up.
function isSilenceNoticed(): boolean {
  return hang === undefined || contender.redlock.masters.status().masters.some(({ state }) => state === 'silent');
}

async function load(goOn: () => boolean): Promise<void> {
  const work = async (): Promise<void> => {
    while (goOn()) {
      const lock = await contender.acquire(`key:${done++ % keys}`, '10s', { wait: '30s' });
      await lock.release();
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, work));
}

async function measure(): Promise<{ readonly heap: number; readonly handles: number; readonly pending: number }> {
  // A release resolves at a quorum: let the other masters answer, too.
  const silent = hang === undefined ? 0 : 1;
  while (masters.filter(({ pending }) => pending > 0).length > silent) await setImmediate();
  globalThis.gc?.();
  const pending = masters.reduce((sum, master) => sum + master.pending, 0);
  return { pending, heap: process.memoryUsage().heapUsed, handles: process.getActiveResourcesInfo().length };
}
