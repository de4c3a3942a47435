import { Redis } from 'ioredis';
import { inRounds, median, sharedNow, sleep } from './figures.mjs';
import { CommandCounter } from './servers.mjs';
import { latencies, Trace } from './trace.mjs';

/**
 * Ttl of a lock, in milliseconds, the same for all. With the usual 10 s, `redlock` 5 would stand still for 10 s
 * whenever keys from the previous attempt of the same process block an attempt.
 */
const TTL = 1_000;
/** Duration of the work under the lock, in milliseconds. */
export const SECTION = 1;
/** While commands are counted, in milliseconds. */
const COUNTED = 300;
/** Time after the end of a round before the benchmark frees the key for the remaining waiters, in milliseconds. */
const GRACE = 200;

/** Several processes with several waiters each compete for one key, contender by contender in turn. */
export async function contention(bench, contenders, { processes, waiters }) {
  const scene = { processes, waiters, section: SECTION };
  const compete = async (contender, duration) => (await trace(bench, contender, scene, duration)).trace;
  const rounds = await inRounds({ rounds: bench.rounds }, contenders, (contender) =>
    compete(contender, bench.duration),
  );
  const found = {};
  for (const contender of contenders) {
    const commands = await commandsPerSection(bench, contender, scene);
    found[contender] = { ...summaryOf(rounds.get(contender)), commands };
  }
  return { processes, waiters, contenders: found };
}

let keys = 0;
/** A new key for each round, so that leftovers of one round do not affect the next. */
const newKey = (contender) => `${contender}:${keys++}`;

/** Runs the contenders on one key for a while, and returns their trace. */
export async function trace({ pool, urls }, contender, scene, duration, key = newKey(contender)) {
  const { processes, waiters, section, keys: count } = scene;
  // In the future, so that all processes have received the task by then.
  const start = sharedNow() + 50;
  const end = start + duration;
  const task = { contender, key, ttl: TTL, section, waiters, start, end, keys: count };
  const contending = pool.run('contend', task, processes);
  const results = await endingSoon(contending, urls, key, end);
  return { trace: new Trace(results, start, end) };
}

/** Frees the key repeatedly after the end: some contenders would otherwise keep blocking each other for a long time. */
async function endingSoon(contending, urls, key, end) {
  let open = true;
  const results = contending.finally(() => (open = false));
  const clients = urls.map((url) => new Redis(url));
  await Promise.race([results, sleep(end + GRACE - sharedNow())]);
  while (open) {
    await Promise.all(clients.map((client) => client.del(key, `lock:${key}`, `mutex:${key}`, `semaphore:${key}`)));
    await sleep(20);
  }
  for (const client of clients) client.disconnect();
  return results;
}

async function commandsPerSection(bench, contender, scene) {
  const key = newKey(contender);
  const counter = await CommandCounter.start(bench.urls, key);
  const { trace: found } = await trace(bench, contender, scene, COUNTED, key);
  return (await counter.stop()) / found.all;
}

/** What one round gives, of which the median of all rounds counts. */
const FIGURES = ['handOffRate', 'sectionRate', 'longestWait', 'evenShare', 'medianWait', 'cpu', 'luck'];

function summaryOf(rounds) {
  const medians = FIGURES.map((name) => [name, median(rounds.map((round) => round[name]))]);
  const sum = (of) => rounds.map(of).reduce((a, b) => a + b);
  return {
    ...Object.fromEntries(medians),
    away: latencies(rounds.flatMap(({ handOffsAway }) => handOffsAway)),
    failures: sum(({ failures }) => failures.length),
    overlaps: sum(({ overlaps }) => overlaps),
    mostOvertaken: Math.max(...rounds.map(({ mostOvertaken }) => mostOvertaken)),
  };
}
