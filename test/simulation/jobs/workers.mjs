// Threads that play plans. The results do not depend on their number.
import { once } from 'node:events';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';

/** Number of plans that a thread plays at a time. */
const CHUNK = 50;

export class Workers {
  constructor(folder, count) {
    const file = join(folder, 'test/simulation/jobs/worker.js');
    const resourceLimits = { maxYoungGenerationSizeMb: 64 };
    this.threads = Array.from({ length: count }, () => new Worker(file, { resourceLimits }));
  }

  /** Plays the plans from one seed on. */
  async playMany({ seed, runs, stopAtFirst = false }, progress = () => undefined) {
    const sum = { total: {}, reached: {}, failures: [] };
    let next = seed;
    const end = seed + runs;
    const work = async (thread) => {
      while (next < end && !(stopAtFirst && sum.failures.length > 0)) {
        const from = next;
        next = Math.min(end, from + CHUNK);
        const part = await ask(thread, { op: 'play', from, to: next, stopAtFirst });
        for (const kind of ['total', 'reached']) {
          for (const [name, count] of Object.entries(part[kind])) sum[kind][name] = (sum[kind][name] ?? 0) + count;
        }
        sum.failures.push(...part.failures);
        progress(sum.total.runs);
      }
    };
    await Promise.all(this.threads.map(work));
    sum.failures.sort((one, other) => one.seed - other.seed);
    sum.total.fingerprint >>>= 0;
    return sum;
  }

  /** Plays one plan again. */
  show(seed, shrinks) {
    return ask(this.threads[0], { op: 'show', seed, shrinks });
  }

  async end() {
    await Promise.all(this.threads.map((thread) => thread.terminate()));
  }
}

async function ask(thread, request) {
  thread.postMessage(request);
  // Rejects with the error of the thread, if it ends with one.
  const [answer] = await once(thread, 'message');
  return answer;
}
