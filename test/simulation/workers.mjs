// Threads that play plans, each with its own copy of the library. The results do not depend on their number.
import { once } from 'node:events';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';

// V8 must not place a run's leftovers among long-lived objects, from where they keep the leftovers of later runs alive.
setFlagsFromString('--no-allocation-site-pretenuring');
// Each thread compiles the whole library anew, and a thousand small functions are about equally hot: with the usual
// inlining, optimizing them takes longer than it saves.
setFlagsFromString('--max-inlined-bytecode-size-cumulative=150');
setFlagsFromString('--max-inlined-bytecode-size=150');
setFlagsFromString('--interrupt-budget=130000');

/** Number of plans that a thread plays at a time, if it looks for the first that fails, and if it plays many. */
const [FEW, MANY] = [20, 100];

/** Calls back with threads for this code, and removes all of it afterwards. */
export async function withWorkers(compiled, { worker, count }, use) {
  // Most objects of a run die young. A larger young generation leaves less to copy.
  const resourceLimits = { maxYoungGenerationSizeMb: 64 };
  const file = join(compiled.folder, 'test/simulation', worker);
  const threads = Array.from({ length: count }, () => new Worker(file, { resourceLimits }));
  try {
    return await use(threads);
  } finally {
    await Promise.all(threads.map((thread) => thread.terminate()));
    await compiled.remove();
  }
}

export async function playMany(threads, { seed, runs, seconds = Infinity, ...choice }, progress = () => undefined) {
  const total = { runs: 0, failures: [] };
  let next = seed;
  const end = seed + runs;
  const deadline = performance.now() + seconds * 1_000;
  const isEnough = () =>
    next >= end || (choice.stopAtFirst && total.failures.length > 0) || performance.now() > deadline;
  const work = async (thread) => {
    while (!isEnough()) {
      const from = next;
      next = Math.min(end, from + (choice.stopAtFirst ? FEW : MANY));
      add(total, await ask(thread, { op: 'play', from, to: next, ...choice }));
      progress(total.runs);
    }
  };
  await Promise.all(threads.map(work));
  // The order in which parts arrive must not matter.
  total.failures.sort((one, other) => one.seed - other.seed);
  total.fingerprint >>>= 0;
  return total;
}

export function show([thread], seed, options) {
  return ask(thread, { op: 'show', seed, ...options });
}

async function ask(thread, request) {
  thread.postMessage(request);
  // Rejects with the error of the thread, if it ends with one.
  const [answer] = await once(thread, 'message');
  return answer;
}

function add(total, part) {
  for (const [name, value] of Object.entries(part)) {
    if (Array.isArray(value)) total[name].push(...value);
    else if (typeof value === 'object') add((total[name] ??= {}), value);
    else total[name] = (total[name] ?? 0) + value;
  }
}
