// Threads that play schedules. Each has its own copy of the library. The results do not depend on the number of
// threads.
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

/** Number of schedules that a thread plays at a time. */
const CHUNK = 250;

export class Workers {
  constructor(folder, count) {
    const file = join(folder, 'test/simulation/worker.js');
    // Most objects of a run die young. A larger young generation leaves less to copy.
    const resourceLimits = { maxYoungGenerationSizeMb: 64 };
    this.threads = Array.from({ length: count }, () => new Worker(file, { resourceLimits }));
  }

  /** Plays the schedules from one seed on. */
  async playMany({ seed, runs, faults, mutant, stopAtFirst = false, seconds = Infinity }, progress = () => undefined) {
    const total = {
      runs: 0,
      events: 0,
      grants: 0,
      sound: 0,
      fingerprint: 0,
      broken: {},
      ailments: {},
      faults: {},
      reached: {},
      failures: [],
      first: undefined,
    };
    let next = seed;
    const end = seed + runs;
    const deadline = performance.now() + seconds * 1_000;
    const isEnough = () => next >= end || (stopAtFirst && total.failures.length > 0) || performance.now() > deadline;
    const work = async (thread) => {
      while (!isEnough()) {
        const from = next;
        next = Math.min(end, from + (stopAtFirst ? 20 : CHUNK));
        add(total, await ask(thread, { op: 'play', from, to: next, faults, mutant, stopAtFirst }));
        progress(total.runs);
      }
    };
    await Promise.all(this.threads.map(work));
    total.failures.sort((a, b) => a - b);
    return total;
  }

  /** Plays one schedule again, and prints its details. */
  async show(seed, options, print) {
    const { lines, result } = await ask(this.threads[0], { op: 'show', seed, ...options });
    for (const line of lines) print(line);
    return result;
  }

  async end() {
    await Promise.all(this.threads.map((thread) => thread.terminate()));
  }
}

async function ask(thread, request) {
  thread.postMessage(request);
  const [answer] = await once(thread, 'message');
  return answer;
}

function add(total, part) {
  total.runs += part.runs;
  total.events += part.events;
  total.grants += part.grants;
  total.sound += part.sound;
  // The order in which parts arrive must not matter.
  total.fingerprint = (total.fingerprint + part.fingerprint) >>> 0;
  addCounts(total.broken, part.broken);
  addCounts(total.ailments, part.ailments);
  addCounts(total.faults, part.faults);
  addCounts(total.reached, part.reached);
  total.failures.push(...part.failures);
  if (part.first && !(total.first && total.first.seed < part.first.seed)) total.first = part.first;
}

function addCounts(totals, counts) {
  for (const [name, count] of Object.entries(counts)) totals[name] = (totals[name] ?? 0) + count;
}
