import { oneByOne } from '../latency/one-by-one.mjs';
import { onField } from '../measure/field.mjs';
import { warmUp } from '../measure/warm-up.mjs';
import { checksOf } from '../sharing/checks.mjs';
import { crowds, CROWDS, EXCLUSIVE, PERMIT, SHARED } from '../sharing/crowds.mjs';
import { printCrowds, printOneByOne, printSemaphores } from '../sharing/print.mjs';
import { semaphores } from '../sharing/semaphores.mjs';

const TTL = 3_000;
/** As `--only` names the peer that has permits. */
const WITH_PERMITS = 'redis-semaphore';

const LENGTHS = {
  usual: {
    crowds: { duration: 250, rounds: 7 },
    oneByOne: { rounds: 7, count: 1_000 },
    semaphores: { duration: 800, rounds: 3 },
  },
  quick: {
    crowds: { duration: 160, rounds: 5 },
    // Many calls, or the first ones of the process, which are slower, would weigh too much.
    oneByOne: { rounds: 5, count: 500 },
    semaphores: { duration: 400, rounds: 2 },
  },
};

/** Measures permits beside locks on as many keys, shared locks beside exclusive ones, and permits of a peer. */
export async function run({ quick, masters = [1, 3], only }) {
  const lengths = quick ? LENGTHS.quick : LENGTHS.usual;
  const withPeer = !only || only.includes(WITH_PERMITS);
  const figures = [];
  for (const count of masters) {
    const field = { masters: count, contenders: [EXCLUSIVE, SHARED, PERMIT], ttl: TTL };
    figures.push(await onField(field, (bench) => measure(bench, { ...lengths, quick, withPeer })));
  }
  return { figures, checks: figures.flatMap(checksOf) };
}

async function measure(bench, { quick, withPeer, ...lengths }) {
  const masters = bench.urls.length;
  await warmUp(bench, { quick });
  const permits = await crowds(bench, CROWDS.permits, lengths.crowds);
  printCrowds(masters, permits);
  const shared = await crowds(bench, CROWDS.shared, lengths.crowds);
  printCrowds(masters, shared);
  // Without the member for permits: what is promised of one at a time concerns shared locks.
  const locks = { members: [EXCLUSIVE, SHARED], run: (...task) => bench.crew.run(...task) };
  const single = await oneByOne({ ...bench, crew: locks }, lengths.oneByOne);
  printOneByOne(masters, single);
  const atLimit = await semaphores(bench, { ...lengths.semaphores, withPeer });
  printSemaphores(masters, atLimit);
  return { masters, permits, shared, oneByOne: single, semaphores: atLimit };
}
